// Package crc32c sums up large buffers with the Castagnoli polynomial. The values are
// those of hash/crc32, which takes 8 bytes at a time with the processor's own instruction;
// here it is 256 bytes at a time where the processor multiplies vectors without carries,
// some three times as fast: a checksum over each block that is moved then costs little
// beside the move.
package crc32c

import "hash/crc32"

// least is the size in bytes from which on it is worth it.
const least = 1 << 10

// Checksum is the CRC32C of b.
func Checksum(b []byte) uint32 { return Update(0, b) }

// Update is the CRC32C of what crc is of with b behind it.
func Update(crc uint32, b []byte) uint32 {
	if len(b) >= least {
		crc, b = wide(crc, b)
	}
	// The table is not kept in a variable: hash/crc32 has one, and this is a lookup.
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), b)
}
