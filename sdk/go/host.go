package kvrt

import (
	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/sdk/go/internal/host"
)

// Log writes a line to the guest's log (capability kvrt_log). The host repeats an equal
// warning once only.
func Log(level abi.Level, line string) { host.Log(level, line) }

// Warn writes a warning to the guest's log.
func Warn(line string) { host.Log(abi.LevelWarn, line) }

// Logs tells whether a line of this level would be kept.
func Logs(level abi.Level) bool { return host.Logs(level) }

// Now is the wall clock in ns since 1970, the same throughout a call (capability
// kvrt_clock).
func Now() int64 { return host.Now() }

// Monotonic is the monotonic clock in ns, the same throughout a call (capability
// kvrt_clock).
func Monotonic() int64 { return host.Monotonic() }

// Fetch hands a hint of this call's request to the host's fetch hint store (capability
// kvrt_fetch) and answers what the store says. No source means local storage.
func Fetch(source string, hashes []uint64, flags abi.FetchFlag) Answer {
	return verdict(host.Fetch(source, hashes, flags))
}

// Discard drops the hint of this call's request (capability kvrt_fetch). It may be
// repeated.
func Discard() Answer { return verdict(host.Discard()) }

// Finish ends this call's request (capability kvrt_fetch). It may be repeated.
func Finish(aborted bool) Answer { return verdict(host.Finish(aborted)) }

// HintStatus is how the hint of a request stands in the host's fetch hint store.
type HintStatus = host.HintStatus

// Hint tells how the hint of this call's request stood before the call (capability
// kvrt_fetch).
func Hint() (HintStatus, abi.Reason) {
	s, n := host.Hint()
	return s, reason(n)
}

// Prefetch has blocks brought from a source into the host's block store, ahead of need and
// in the background (capability kvrt_fetch). It is no hint of the request.
func Prefetch(source string, hashes []uint64) Answer { return verdict(host.Prefetch(source, hashes)) }

// RequestHashes writes the blocks of this call's request, as its engine described them, to
// a slice of the caller's that has room for all, and returns how many there are
// (capability kvrt_store).
func RequestHashes(room []uint64) (blocks int, why abi.Reason) {
	n := host.RequestHashes(room)
	return int(max(n, 0) / 8), reason(n)
}

// InStore writes for each block whether the host's block store has it, to a slice of the
// caller's that has room for all, and returns how many blocks that are (capability
// kvrt_store). No hashes stand for the blocks of the request.
func InStore(hashes []uint64, room []abi.Residency) (blocks int, why abi.Reason) {
	n := host.InStore(hashes, room)
	return int(max(n, 0)), reason(n)
}

// Evict evicts blocks of the request's namespace from the host's block store and its
// device, when the action is accepted (capability kvrt_store). No hashes stand for the
// blocks of the request.
func Evict(hashes []uint64) Answer { return accepted(host.Evict(hashes)) }

// EvictAfter evicts as [Evict] does, when the request of the action has ended.
func EvictAfter(hashes []uint64) Answer { return accepted(host.EvictAfter(hashes)) }

// Claim is what a run of blocks, or of the request's tokens, is worth.
type Claim = host.Claim

// ToEnd, as Claim.To, is the end of the list, or of the request.
const ToEnd = host.ToEnd

// Retain has the host's block store keep blocks (capability kvrt_store). The claims name
// runs of the hashes, or without hashes of the request's tokens; 128 at most. scope says
// whose claims these are; empty: the request's.
func Retain(hashes []uint64, scope string, claims ...Claim) Answer {
	return accepted(host.Retain(hashes, scope, claims))
}

// DeviceMemory describes the device's memory for blocks.
type DeviceMemory = host.DeviceMemory

// Device asks for the device's memory for blocks (capability kvrt_gpu). The reason is
// ReasonNone, or says why there is none.
func Device() (DeviceMemory, abi.Reason) {
	m, n := host.Device()
	return m, reason(n)
}

// OnDevice writes for each block whether it is on the device, to a slice of the caller's
// that has room for all, and returns how many blocks that are (capability kvrt_gpu). No
// hashes stand for the blocks of the request.
func OnDevice(hashes []uint64, room []abi.Residency) (blocks int, why abi.Reason) {
	n := host.OnDevice(hashes, room)
	return int(max(n, 0)), reason(n)
}

// PrefetchToDevice brings blocks from the host's block store to the device, when the action
// is accepted (capability kvrt_gpu). No hashes stand for the blocks of the request.
func PrefetchToDevice(hashes []uint64) Answer {
	return accepted(host.PrefetchToDevice(hashes))
}

// accepted is the answer where a host function counts blocks.
func accepted(n int64) Answer { return verdict(int32(min(n, 0))) }

func reason(n int64) abi.Reason {
	if n >= 0 {
		return abi.ReasonNone
	}
	return abi.Reason(-n)
}
