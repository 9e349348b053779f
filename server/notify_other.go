//go:build !linux

package server

// monotonicUsec has no answer where there is no systemd.
func monotonicUsec() (int64, bool) { return 0, false }
