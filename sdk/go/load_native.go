//go:build !wasip1

package kvrt

import "github.com/kvrt/kvrt/abi"

func u32(b []byte, off uint32) uint32 { return abi.U32(b, off) }

func u64(b []byte, off uint32) uint64 { return abi.U64(b, off) }
