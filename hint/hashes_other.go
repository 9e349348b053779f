//go:build !amd64

package hint

func mpWide(dst, src []byte) (_, _ []byte) { return dst, src }

func jsonWide(dst, src []byte) (left, rest []byte) { return dst, src }
