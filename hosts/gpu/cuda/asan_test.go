//go:build cgo && linux && asan

package cuda

// With go test -asan the fake driver is looked after, too.
var sanitize = []string{"-fsanitize=address"}
