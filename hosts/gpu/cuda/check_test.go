//go:build cgo && linux

package cuda

func check() int { return -1 }
