//go:build !linux

package peer

import "os"

// mapSlab refuses: only Linux has files whose size is sealed.
func mapSlab(*os.File, uint64) ([]byte, error) {
	return nil, violation("a slab cannot be mapped on this system")
}

func unmapSlab([]byte) {}
