// Package imports holds the house rules that a compiler does not: who may
// import whom, which modules a package may link, and how a file looks. All of
// it is tests; each rule is a line of a table with its reason.
package imports
