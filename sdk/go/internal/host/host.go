// Package host is the host functions: the imports of the module in a guest, and a host
// that a test sets elsewhere. What a guest does not use is not imported, and needs no
// grant.
package host
