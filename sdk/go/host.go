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
