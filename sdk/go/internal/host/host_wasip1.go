package host

import (
	"encoding/binary"
	"unsafe"

	"github.com/kvrt/kvrt/abi"
)

//go:wasmimport kvrt_log enabled
func logEnabled(level uint32) int32

//go:wasmimport kvrt_log write
//go:noescape
func logWrite(level uint32, msg unsafe.Pointer, n uint32)

//go:wasmimport kvrt_clock now
func clockNow() int64

//go:wasmimport kvrt_clock monotonic
func clockMonotonic() int64

//go:wasmimport kvrt_fetch submit
//go:noescape
func fetchSubmit(source unsafe.Pointer, sourceLen uint32, hashes unsafe.Pointer, count, flags uint32) int32

//go:wasmimport kvrt_fetch discard
func fetchDiscard() int32

//go:wasmimport kvrt_fetch finish
func fetchFinish(aborted uint32) int32

//go:wasmimport kvrt_fetch status
//go:noescape
func fetchStatus(buf unsafe.Pointer, n uint32) int64

//go:wasmimport kvrt_fetch prefetch
//go:noescape
func fetchPrefetch(source unsafe.Pointer, sourceLen uint32, hashes unsafe.Pointer, count, flags uint32) int32

//go:wasmimport kvrt_store residency
//go:noescape
func storeResidency(hashes unsafe.Pointer, count uint32, buf unsafe.Pointer, n uint32) int64

//go:wasmimport kvrt_store evict
//go:noescape
func storeEvict(hashes unsafe.Pointer, count uint32) int64

//go:wasmimport kvrt_store evict_after
//go:noescape
func storeEvictAfter(hashes unsafe.Pointer, count uint32) int64

//go:wasmimport kvrt_store request
//go:noescape
func storeRequest(buf unsafe.Pointer, n uint32) int64

//go:wasmimport kvrt_store retain
//go:noescape
func storeRetain(hashes unsafe.Pointer, count uint32, claims unsafe.Pointer, claimsLen uint32, scope unsafe.Pointer, scopeLen uint32) int64

//go:wasmimport kvrt_gpu info
//go:noescape
func gpuInfo(buf unsafe.Pointer, n uint32) int64

//go:wasmimport kvrt_gpu residency
//go:noescape
func gpuResidency(hashes unsafe.Pointer, count uint32, buf unsafe.Pointer, n uint32) int64

//go:wasmimport kvrt_gpu prefetch
//go:noescape
func gpuPrefetch(hashes unsafe.Pointer, count uint32) int64

// Log writes a line.
func Log(level abi.Level, line string) {
	logWrite(uint32(level), unsafe.Pointer(unsafe.StringData(line)), uint32(len(line)))
}

// Logs asks for a level.
func Logs(level abi.Level) bool { return logEnabled(uint32(level)) != 0 }

// Now reads the wall clock.
func Now() int64 { return clockNow() }

// Monotonic reads the monotonic clock.
func Monotonic() int64 { return clockMonotonic() }

// Fetch submits a hint.
func Fetch(source string, hashes []uint64, flags abi.FetchFlag) int32 {
	var from unsafe.Pointer
	if source != "" {
		from = unsafe.Pointer(unsafe.StringData(source))
	}
	return fetchSubmit(from, uint32(len(source)), unsafe.Pointer(unsafe.SliceData(hashes)), uint32(len(hashes)), uint32(flags))
}

// Discard drops the request's hint.
func Discard() int32 { return fetchDiscard() }

// Finish ends the request.
func Finish(aborted bool) int32 { return fetchFinish(uint32(abi.Bool(aborted).Val)) }

// Hint tells how the request's hint stands.
func Hint() (HintStatus, int64) {
	var b [abi.SizeFetchStatus]byte
	n := fetchStatus(unsafe.Pointer(&b), abi.SizeFetchStatus)
	if n < 0 {
		return HintStatus{}, n
	}
	u32 := func(off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }
	u64 := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
	return HintStatus{
		State: abi.FetchState(u32(abi.OffFetchStatusState)), Hashes: u32(abi.OffFetchStatusHashes),
		Submitted: u64(abi.OffFetchStatusSubmittedNS), Expires: u64(abi.OffFetchStatusExpiresNS), HasSource: u32(abi.OffFetchStatusHasSource) != 0,
	}, n
}

// Prefetch has blocks brought from a source.
func Prefetch(source string, hashes []uint64) int32 {
	return fetchPrefetch(unsafe.Pointer(unsafe.StringData(source)), uint32(len(source)), unsafe.Pointer(unsafe.SliceData(hashes)), uint32(len(hashes)), 0)
}

// RequestHashes writes the blocks of the request, and returns their length in bytes.
func RequestHashes(room []uint64) int64 {
	return storeRequest(unsafe.Pointer(unsafe.SliceData(room)), 8*uint32(len(room)))
}

// InStore asks where blocks are.
func InStore(hashes []uint64, room []abi.Residency) int64 {
	return storeResidency(unsafe.Pointer(unsafe.SliceData(hashes)), uint32(len(hashes)), unsafe.Pointer(unsafe.SliceData(room)), uint32(len(room)))
}

// Evict evicts blocks.
func Evict(hashes []uint64) int64 {
	return storeEvict(unsafe.Pointer(unsafe.SliceData(hashes)), uint32(len(hashes)))
}

// EvictAfter evicts blocks when the request has ended.
func EvictAfter(hashes []uint64) int64 {
	return storeEvictAfter(unsafe.Pointer(unsafe.SliceData(hashes)), uint32(len(hashes)))
}

// Retain claims blocks.
func Retain(hashes []uint64, scope string, claims []Claim) int64 {
	b := AppendClaims(nil, claims)
	var whose unsafe.Pointer
	if scope != "" {
		whose = unsafe.Pointer(unsafe.StringData(scope))
	}
	return storeRetain(unsafe.Pointer(unsafe.SliceData(hashes)), uint32(len(hashes)), unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b)), whose, uint32(len(scope)))
}

// Device describes the device.
func Device() (DeviceMemory, int64) {
	var b [abi.SizeDeviceInfo]byte
	n := gpuInfo(unsafe.Pointer(&b), abi.SizeDeviceInfo)
	if n < 0 {
		return DeviceMemory{}, n
	}
	u64 := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
	return DeviceMemory{
		Device:     abi.Device(binary.LittleEndian.Uint32(b[abi.OffDeviceInfoDevice:])),
		BlockBytes: u64(abi.OffDeviceInfoBlockBytes), Blocks: u64(abi.OffDeviceInfoBlocks), Used: u64(abi.OffDeviceInfoUsed),
	}, n
}

// OnDevice asks where blocks are.
func OnDevice(hashes []uint64, room []abi.Residency) int64 {
	return gpuResidency(unsafe.Pointer(unsafe.SliceData(hashes)), uint32(len(hashes)), unsafe.Pointer(unsafe.SliceData(room)), uint32(len(room)))
}

// PrefetchToDevice brings blocks to the device.
func PrefetchToDevice(hashes []uint64) int64 {
	return gpuPrefetch(unsafe.Pointer(unsafe.SliceData(hashes)), uint32(len(hashes)))
}
