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
	return verdict(int32(min(host.PrefetchToDevice(hashes), 0)))
}

func reason(n int64) abi.Reason {
	if n >= 0 {
		return abi.ReasonNone
	}
	return abi.Reason(-n)
}
