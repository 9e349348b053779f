package server

import (
	"encoding/json"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// StatusReport is the answer of GET /v1/status.
type StatusReport struct {
	Version    string    `json:"version"`
	Started    time.Time `json:"started"`
	Socket     string    `json:"socket"`
	Admin      string    `json:"admin"`
	Generation uint64    `json:"generation"`
	Ready      bool      `json:"ready"`
	NotReady   []string  `json:"not_ready,omitempty"` // why
	Draining   bool      `json:"draining"`

	Guests     []GuestStatus     `json:"guests"`
	Dispatches uint64            `json:"dispatches"`
	Malformed  uint64            `json:"malformed"`
	Unrouted   map[string]uint64 `json:"unrouted"` // actions that reached no guest, by reason
	Swaps      uint64            `json:"swaps"`
	Refused    uint64            `json:"refused_swaps"`
	Reload     ReloadStatus      `json:"reload"`

	GuestMemory GuestMemory `json:"guest_memory"`
	HeavyCalls  HeavyCalls  `json:"heavy_calls"`
	Connections int         `json:"connections"`

	Formulations uint64          `json:"formulations"`
	Workers      int             `json:"workers"`
	Feeds        []FeedStatus    `json:"feeds"`
	Lineage      []LineageStatus `json:"lineage"` // by namespace; one without feeds has none
	Store        *BlocksStatus   `json:"store,omitempty"`
	Device       *DeviceStatus   `json:"device,omitempty"`
	Peers        *PeersStatus    `json:"peers,omitempty"`
	Outcomes     *OutcomesStatus `json:"outcomes,omitempty"`
}

// GuestMemory is what the instances of all guests may come to and what those that are
// loaded, or being replaced, may come to, in bytes.
type GuestMemory struct {
	Budget   uint64 `json:"budget"`
	Reserved uint64 `json:"reserved"`
}

// HeavyCalls is the lane of calls that take so much fuel that only some run at once: those
// of guests whose status says that they are heavy.
type HeavyCalls struct {
	Running int `json:"running"`
	Limit   int `json:"limit"`
	// Fuel is what a call takes that makes its guest heavy.
	Fuel uint64 `json:"fuel"`
}

// ReloadStatus tells of the last reload.
type ReloadStatus struct {
	Time   time.Time `json:"time,omitzero"` // zero before the first
	OK     bool      `json:"ok"`
	Error  string    `json:"error,omitempty"`
	LastOK time.Time `json:"last_ok"` // of the last that was not refused; the start counts
}

// GuestList is the answer of GET /v1/guests.
type GuestList struct {
	Generation uint64        `json:"generation"`
	Guests     []GuestStatus `json:"guests"`
}

// GuestStatus describes a loaded guest and what it has done since it was loaded.
type GuestStatus struct {
	Name         string          `json:"name"`
	Version      string          `json:"version"`
	SHA256       string          `json:"sha256"`
	Source       string          `json:"source"`
	Generation   uint64          `json:"generation"` // the one that loaded it
	Roles        []string        `json:"roles"`
	ActionTypes  []string        `json:"action_types"`
	Dialects     []string        `json:"dialects"`
	Capabilities []string        `json:"capabilities"` // that its manifest asks for
	Grants       []string        `json:"grants"`       // what it was given
	Parameters   json.RawMessage `json:"parameters,omitempty"`
	Limits       GuestLimits     `json:"limits"`
	History      int             `json:"history"` // how many times it can be rolled back

	Instances   int               `json:"instances"`
	Vacant      int               `json:"vacant"`
	MemoryBytes uint64            `json:"memory_bytes"`
	Calls       uint64            `json:"calls"`
	Accepted    uint64            `json:"accepted"`
	Rejected    map[string]uint64 `json:"rejected"` // by reason
	Traps       map[string]uint64 `json:"traps"`    // by kind
	Stuck       int               `json:"stuck"`    // instances held by a call that does not end
	Stalls      uint64            `json:"stalls"`   // how often that came about
	Unavailable uint64            `json:"unavailable"`
	Crowded     uint64            `json:"crowded"` // of Unavailable: too many heavy calls were running
	Heavy       bool              `json:"heavy"`   // its calls take so much fuel that only some run at once
	Fuel        uint64            `json:"fuel"`
	LogDropped  uint64            `json:"log_lines_dropped"`

	// Quarantined tells that callers are kept away, for QuarantineMS more, because half
	// of the last calls trapped; Quarantines how often that came about.
	Quarantined  bool   `json:"quarantined"`
	QuarantineMS int64  `json:"quarantine_ms,omitempty"`
	Quarantines  uint64 `json:"quarantines"`

	// ReservedBytes is the guest's part of StatusReport.GuestMemory.
	ReservedBytes uint64     `json:"reserved_bytes"`
	Idle          IdleStatus `json:"idle"`

	// LastError is why the last change of this guest was refused; nil when it was not.
	LastError *GuestError `json:"last_error,omitempty"`
}

// IdleStatus is what calls of kvrt_idle have done.
type IdleStatus struct {
	Calls   uint64            `json:"calls"`
	Fuel    uint64            `json:"fuel"`
	Seconds float64           `json:"seconds"`
	Traps   map[string]uint64 `json:"traps"` // by kind
}

// GuestError is a change of a guest that was refused.
type GuestError struct {
	Time  time.Time `json:"time"`
	Error string    `json:"error"`
}

// GuestLimits are runtime.Limits in JSON. What is left out has its default.
type GuestLimits struct {
	Fuel          uint64 `json:"fuel,omitempty"`
	ParseFuel     uint64 `json:"parse_fuel,omitempty"`
	FormulateFuel uint64 `json:"formulate_fuel,omitempty"`
	InitFuel      uint64 `json:"init_fuel,omitempty"`
	IdleFuel      uint64 `json:"idle_fuel,omitempty"`
	IdleCalls     uint64 `json:"idle_calls,omitempty"`
	IdleBytes     uint64 `json:"idle_bytes,omitempty"`
	Memory        uint64 `json:"memory,omitempty"` // bytes
	TableElements uint32 `json:"table_elements,omitempty"`
	CallDepth     uint32 `json:"call_depth,omitempty"` // bytes
	Instances     int    `json:"instances,omitempty"`
	OutputBytes   uint32 `json:"output_bytes,omitempty"`
	Actions       int    `json:"actions,omitempty"`
	LogLines      int    `json:"log_lines,omitempty"`
	LogBytes      int    `json:"log_bytes,omitempty"`
	HostCalls     uint64 `json:"host_calls,omitempty"`
	HostBytes     uint64 `json:"host_bytes,omitempty"`
}

func (l GuestLimits) runtime() runtime.Limits {
	return runtime.Limits{
		Memory: l.Memory, TableElements: l.TableElements, Instances: l.Instances, CallDepth: l.CallDepth,
		Fuel: l.Fuel, ParseFuel: l.ParseFuel, FormulateFuel: l.FormulateFuel, InitFuel: l.InitFuel,
		IdleFuel: l.IdleFuel, IdleCalls: l.IdleCalls, IdleBytes: l.IdleBytes,
		OutputBytes: l.OutputBytes, Actions: l.Actions, LogLines: l.LogLines, LogBytes: l.LogBytes, HostCalls: l.HostCalls, HostBytes: l.HostBytes,
	}
}

func guestLimits(l runtime.Limits) GuestLimits {
	return GuestLimits{
		Memory: l.Memory, TableElements: l.TableElements, Instances: l.Instances, CallDepth: l.CallDepth,
		Fuel: l.Fuel, ParseFuel: l.ParseFuel, FormulateFuel: l.FormulateFuel, InitFuel: l.InitFuel,
		IdleFuel: l.IdleFuel, IdleCalls: l.IdleCalls, IdleBytes: l.IdleBytes,
		OutputBytes: l.OutputBytes, Actions: l.Actions, LogLines: l.LogLines, LogBytes: l.LogBytes, HostCalls: l.HostCalls, HostBytes: l.HostBytes,
	}
}

// TrapKinds are the names of the kinds of trap, in the order of [runtime.TrapKind].
func TrapKinds() [runtime.NumTraps]string {
	return [runtime.NumTraps]string{"guest", "timeout", "out_of_fuel", "host_panic", "quota"}
}

// byReason names the counters that are not 0.
func byReason(counts *[runtime.NumReasons]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for i, n := range counts {
		if n > 0 {
			out[abi.Reason(i).String()] += n
		}
	}
	return out
}

// observed collects what [runtime.Runtime.Observe] tells.
type observed struct {
	runtime runtime.RuntimeStats
	guests  map[string]runtime.GuestStats
}

func (o *observed) Runtime(s runtime.RuntimeStats) { o.runtime = s }
func (o *observed) Guest(s runtime.GuestStats)     { o.guests[s.Name] = s }

func observe(rt *runtime.Runtime) *observed {
	o := &observed{guests: map[string]runtime.GuestStats{}}
	rt.Observe(o)
	return o
}

// guestStatus puts together what a guest is and what it has done.
func guestStatus(g *runtime.GuestInfo, s *runtime.GuestStats) GuestStatus {
	m := g.Info.Manifest
	st := GuestStatus{
		Name: g.Spec.Name, Version: m.Version, SHA256: g.Info.SHA256, Source: g.Spec.Source, Generation: g.Generation,
		Roles: []string{}, ActionTypes: []string{}, Dialects: append([]string{}, m.Dialects...),
		Capabilities: append([]string{}, m.Capabilities...), Grants: append([]string{}, g.Spec.Grants...),
		Limits: guestLimits(g.Limits), History: g.History,
		Instances: s.Instances, Vacant: s.Vacant, MemoryBytes: s.MemoryBytes, Calls: s.Calls, Accepted: s.Accepted,
		Rejected: byReason(&s.Rejected), Traps: byKind(&s.Traps), Stuck: s.Stuck, Stalls: s.Stalls, Unavailable: s.Unavailable, Crowded: s.Crowded, Heavy: s.Heavy, Fuel: s.Fuel, LogDropped: s.LogDropped,
		Quarantined: s.Quarantined, QuarantineMS: s.QuarantineLeft.Milliseconds(), Quarantines: s.Quarantines, ReservedBytes: s.ReservedBytes,
		Idle: IdleStatus{s.Idle.Calls, s.Idle.Fuel, float64(s.Idle.NS) / 1e9, byKind(&s.Idle.Traps)},
	}
	if json.Valid(g.Spec.Parameters) {
		st.Parameters = g.Spec.Parameters
	}
	for _, r := range m.Roles {
		st.Roles = append(st.Roles, string(r))
	}
	for _, t := range m.ActionTypes {
		st.ActionTypes = append(st.ActionTypes, t.Type)
	}
	return st
}

// byKind names the counters that are not 0.
func byKind(traps *[runtime.NumTraps]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for i, n := range traps {
		if n > 0 {
			out[TrapKinds()[i]] = n
		}
	}
	return out
}
