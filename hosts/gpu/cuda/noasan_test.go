//go:build cgo && linux && !asan

package cuda

var sanitize []string
