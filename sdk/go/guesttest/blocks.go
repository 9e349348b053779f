//go:build !wasip1

package guesttest

import (
	"slices"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/sdk/go"
)

func (n native) Hint() (kvrt.HintStatus, int64) { return n.h.Hint, abi.SizeFetchStatus }

func (n native) Prefetch(source string, hashes []uint64) int32 {
	switch {
	case n.h.PrefetchRefuses != abi.ReasonNone:
		return -int32(n.h.PrefetchRefuses)
	case source == "" || len(hashes) == 0:
		return -int32(abi.ReasonInvalidPayload)
	}
	n.h.Effects = append(n.h.Effects, Effect{Function: abi.ModuleFetch + ".prefetch", Source: strings.Clone(source), Hashes: slices.Clone(hashes)})
	return 0
}

// blocks are those of a list, or of the request; the number is a refusal.
func (n native) blocks(hashes []uint64, refuses abi.Reason) ([]uint64, int64) {
	switch {
	case refuses != abi.ReasonNone:
		return nil, -int64(refuses)
	case len(hashes) > 0:
		return hashes, 0
	case n.h.Request == nil:
		return nil, -int64(abi.ReasonNotFound)
	}
	return n.h.Request, 0
}

// effect takes an effect on blocks, and counts those that are there.
func (n native) effect(e Effect, refuses abi.Reason, there []uint64) (count int64) {
	list, refused := n.blocks(e.Hashes, refuses)
	if refused != 0 {
		return refused
	}
	e.Hashes = slices.Clone(list)
	n.h.Effects = append(n.h.Effects, e)
	for _, h := range list {
		if slices.Contains(there, h) {
			count++
		}
	}
	return count
}

// residency writes where blocks are: at, or absent.
func (n native) residency(hashes []uint64, room []abi.Residency, refuses abi.Reason, there []uint64, at abi.Residency) int64 {
	list, refused := n.blocks(hashes, refuses)
	if refused != 0 {
		return refused
	}
	if len(room) >= len(list) {
		for i, h := range list {
			if room[i] = abi.ResidencyAbsent; slices.Contains(there, h) {
				room[i] = at
			}
		}
	}
	return int64(len(list))
}

func (n native) RequestHashes(room []uint64) int64 {
	list, refused := n.blocks(nil, n.h.StoreRefuses)
	if refused != 0 {
		return refused
	}
	if len(room) >= len(list) {
		copy(room, list)
	}
	return 8 * int64(len(list))
}

func (n native) InStore(hashes []uint64, room []abi.Residency) int64 {
	return n.residency(hashes, room, n.h.StoreRefuses, n.h.InStore, abi.ResidencyDRAM)
}

func (n native) Evict(hashes []uint64) int64 {
	return n.effect(Effect{Function: abi.ModuleStore + ".evict", Hashes: hashes}, n.h.StoreRefuses, n.h.InStore)
}

// EvictAfter needs a request whose end somebody tells.
func (n native) EvictAfter(hashes []uint64) int64 {
	if n.h.StoreRefuses == abi.ReasonNone && n.h.Identity.RequestID == "" {
		return -int64(abi.ReasonNotFound)
	}
	return n.effect(Effect{Function: abi.ModuleStore + ".evict_after", Hashes: hashes}, n.h.StoreRefuses, n.h.InStore)
}

func (n native) Retain(hashes []uint64, scope string, claims []kvrt.Claim) int64 {
	if len(claims) > abi.StoreClaims {
		return -int64(abi.ReasonLimitExceeded)
	}
	e := Effect{Function: abi.ModuleStore + ".retain", Hashes: hashes, Scope: strings.Clone(scope), Claims: slices.Clone(claims)}
	return n.effect(e, n.h.StoreRefuses, n.h.InStore)
}

func (n native) Device() (kvrt.DeviceMemory, int64) {
	switch {
	case n.h.DeviceRefuses != abi.ReasonNone:
		return kvrt.DeviceMemory{}, -int64(n.h.DeviceRefuses)
	case n.h.Memory == kvrt.DeviceMemory{}:
		return kvrt.DeviceMemory{}, -int64(abi.ReasonUnavailable)
	}
	return n.h.Memory, abi.SizeDeviceInfo
}

func (n native) OnDevice(hashes []uint64, room []abi.Residency) int64 {
	return n.residency(hashes, room, n.h.DeviceRefuses, n.h.OnDevice, abi.ResidencyDevice)
}

func (n native) PrefetchToDevice(hashes []uint64) int64 {
	return n.effect(Effect{Function: abi.ModuleGPU + ".prefetch", Hashes: hashes}, n.h.DeviceRefuses, n.h.InStore)
}
