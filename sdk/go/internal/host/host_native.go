//go:build !wasip1

package host

import "github.com/kvrt/kvrt/abi"

// Native is a host for tests of a guest.
type Native interface {
	Log(level abi.Level, line string)
	Now() int64
	Fetching
	Store
	GPU
}

// Fetching is kvrt_fetch.
type Fetching interface {
	Fetch(source string, hashes []uint64, flags abi.FetchFlag) int32
	Discard() int32
	Finish(aborted bool) int32
	Hint() (HintStatus, int64)
	Prefetch(source string, hashes []uint64) int32
}

// Store is kvrt_store.
type Store interface {
	RequestHashes(room []uint64) int64
	InStore(hashes []uint64, room []abi.Residency) int64
	Evict(hashes []uint64) int64
	EvictAfter(hashes []uint64) int64
	Retain(hashes []uint64, scope string, claims []Claim) int64
}

// GPU is kvrt_gpu.
type GPU interface {
	Device() (DeviceMemory, int64)
	OnDevice(hashes []uint64, room []abi.Residency) int64
	PrefetchToDevice(hashes []uint64) int64
}

// native is the host of the test that runs.
var native Native

// Set makes h the host; nil is none.
func Set(h Native) { native = h }

func get() Native {
	if native == nil {
		panic("no host: call the guest through package guesttest")
	}
	return native
}

// Log writes a line.
func Log(level abi.Level, line string) { get().Log(level, line) }

// Logs asks for a level.
func Logs(abi.Level) bool { return true }

// Now reads the wall clock.
func Now() int64 { return get().Now() }

// Monotonic reads the monotonic clock.
func Monotonic() int64 { return get().Now() }

// Fetch submits a hint.
func Fetch(source string, hashes []uint64, flags abi.FetchFlag) int32 {
	return get().Fetch(source, hashes, flags)
}

// Discard drops the request's hint.
func Discard() int32 { return get().Discard() }

// Finish ends the request.
func Finish(aborted bool) int32 { return get().Finish(aborted) }

// Hint tells how the request's hint stands.
func Hint() (HintStatus, int64) { return get().Hint() }

// Prefetch has blocks brought from a source.
func Prefetch(source string, hashes []uint64) int32 { return get().Prefetch(source, hashes) }

// RequestHashes writes the blocks of the request, and returns their length in bytes.
func RequestHashes(room []uint64) int64 { return get().RequestHashes(room) }

// InStore asks where blocks are.
func InStore(hashes []uint64, room []abi.Residency) int64 { return get().InStore(hashes, room) }

// Evict evicts blocks.
func Evict(hashes []uint64) int64 { return get().Evict(hashes) }

// EvictAfter evicts blocks when the request has ended.
func EvictAfter(hashes []uint64) int64 { return get().EvictAfter(hashes) }

// Retain claims blocks.
func Retain(hashes []uint64, scope string, claims []Claim) int64 {
	return get().Retain(hashes, scope, claims)
}

// Device describes the device.
func Device() (DeviceMemory, int64) { return get().Device() }

// OnDevice asks where blocks are.
func OnDevice(hashes []uint64, room []abi.Residency) int64 { return get().OnDevice(hashes, room) }

// PrefetchToDevice brings blocks to the device.
func PrefetchToDevice(hashes []uint64) int64 { return get().PrefetchToDevice(hashes) }
