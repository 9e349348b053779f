// Package host is the host functions: the imports of the module in a guest, and a host
// that a test sets elsewhere. What a guest does not use is not imported, and needs no
// grant.
package host

import "github.com/kvrt/kvrt/abi"

// DeviceMemory describes the device's memory for blocks.
type DeviceMemory struct {
	Device     abi.Device
	BlockBytes uint64 // a longer block is not brought
	Blocks     uint64 // that there is room for
	Used       uint64 // blocks that are there now
}
