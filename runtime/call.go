package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// Call is the state of one call into a guest, as host functions see it. Each instance
// owns one, reused from call to call, and it is the context.Context that the engine
// passes on, so that a host function reaches it without a lookup.
type Call struct {
	guest   string
	runtime *Runtime

	identity hint.Identity
	context  abi.ContextFrame // nil unless a policy formulates
	message  []byte           // id of the envelope whose action is judged
	action   int              // its index there; -1: none is judged
	effect   Effect
	kept     any
	reason   abi.Reason // of the host function that refused last
	detail   string
	fatal    error
	inHost   *HostFunction // that runs, or panicked
	limits   *Limits       // the guest's, with defaults
	wasm     Instance      // nil in a Call of NewCall
	budget   int64         // fuel that the call began with
	left     int64         // of it, while a host function runs: the guest's counter is behind

	began      int64 // in the runtime's monotonic ns
	wall, mono int64
	logLines   int
	logBytes   int
	hostCalls  uint64
	hostBytes  uint64
	starting   bool      // of the instance: its lines are no request's
	warned     *warnOnce // the guest's
	logDropped uint64
	program    program

	patience    context.Context // nil until a host function asks for it
	endPatience context.CancelFunc

	timer   *time.Timer
	done    chan struct{}
	expired atomic.Bool
}

func newCall(r *Runtime, guest string, limits *Limits, wasm Instance) *Call {
	return &Call{guest: guest, runtime: r, limits: limits, wasm: wasm, warned: &r.warned, done: make(chan struct{})}
}

// CallConfig configures a Call that belongs to no loaded guest. The zero value is
// usable; a clock that is 0 is the machine's.
type CallConfig struct {
	Guest           string
	Identity        hint.Identity
	Context         abi.ContextFrame
	Log             *slog.Logger
	Wall, Monotonic int64
	Limits          Limits
}

// NewCall makes a Call for testing an engine or a host function by itself.
func NewCall(cfg CallConfig) *Call {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	limits := cfg.Limits.withDefaults(0, 0)
	c := newCall(&Runtime{log: cfg.Log, started: time.Now(), cfg: Config{Patience: defaultPatience}}, cfg.Guest, &limits, nil)
	c.beginAt(0, &cfg.Identity, 0)
	c.context = cfg.Context
	c.wall, c.mono = cfg.Wall, cfg.Monotonic
	return c
}

// Refusal returns what the host function that refused last said.
func (c *Call) Refusal() (abi.Reason, string) { return c.reason, c.detail }

// Settle ends a Call of NewCall: it commits or drops the effects as Dispatch would.
func (c *Call) Settle(accepted bool) (abi.Reason, string) {
	if accepted {
		return c.commit()
	}
	c.drop()
	return abi.ReasonNone, ""
}

// begin resets what belongs to one call, and fuels the guest for it.
func (c *Call) begin(id hint.Identity, fuel uint64) { c.beginAt(c.runtime.nanos(), &id, fuel) }

// beginAt is begin for who has read the runtime's monotonic clock a short while ago.
func (c *Call) beginAt(now int64, id *hint.Identity, fuel uint64) {
	c.identity, c.context, c.began = *id, nil, now
	c.message, c.action = nil, -1
	c.reason, c.detail, c.fatal, c.inHost = 0, "", nil, nil
	if c.budget = int64(fuel); c.wasm != nil {
		c.wasm.SetFuel(c.budget)
	}
	c.wall, c.mono, c.logLines, c.logBytes, c.logDropped, c.hostCalls, c.hostBytes = 0, 0, 0, 0, 0, 0, 0
	c.program.seeded, c.program.exit = false, nil
}

// Guest is the name that the operator gave to the guest.
func (c *Call) Guest() string { return c.guest }

// Identity is the request that the call serves. Its strings are views: copy to keep.
func (c *Call) Identity() hint.Identity { return c.identity }

// Context is the routing context that the call formulates for; nil in every other role.
// It holds for the length of the call.
func (c *Call) Context() abi.ContextFrame { return c.context }

// Action names the action that the call judges by the message id of its envelope, nil
// when it has none, and its index there; -1 in every other role. The bytes hold for the
// length of the call.
func (c *Call) Action() (messageID []byte, index int) { return c.message, c.action }

// Began is when the call began. It costs no reading of a clock.
func (c *Call) Began() time.Time { return c.runtime.started.Add(time.Duration(c.began)) }

// Now is the wall clock in ns since 1970, the same throughout one call.
func (c *Call) Now() int64 {
	c.readClocks()
	return c.wall
}

// Monotonic is the monotonic clock in ns, the same throughout one call.
func (c *Call) Monotonic() int64 {
	c.readClocks()
	return c.mono
}

func (c *Call) readClocks() {
	if c.wall == 0 {
		now := time.Now()
		c.wall, c.mono = now.UnixNano(), int64(now.Sub(c.runtime.started))
	}
}

// Defer hands over an effect, which takes place if the call's action is accepted. A
// call has one: so its effects take place all or none. It is false when there is one
// already; the host function then drops e and refuses.
func (c *Call) Defer(e Effect) bool {
	if c.effect != nil {
		return false
	}
	c.effect = e
	return true
}

// Keep keeps a value from call to call of the same instance, for [Call.Kept]: memory that
// a host module uses again. There is one, which belongs to the first that asks.
func (c *Call) Keep(v any) {
	if c.kept == nil {
		c.kept = v
	}
}

// Kept is what Keep was first given; nil before that.
func (c *Call) Kept() any { return c.kept }

// Refuse remembers why a host function refuses and returns the negated reason, which
// is what the guest sees. When the guest answers with that reason and no detail of
// its own, this detail is attached.
func (c *Call) Refuse(r abi.Reason, detail string) int32 {
	c.reason, c.detail = r, detail
	return -int32(r)
}

// Fail reports a failure of the native side that nobody can go on from. The call's
// result does not matter any more: Dispatch returns a *FatalError.
func (c *Call) Fail(err error) { c.fatal = err }

// Failed returns what Fail reported.
func (c *Call) Failed() error { return c.fatal }

// failure is what Fail reported, as Dispatch returns it.
func (c *Call) failure() error {
	if c.fatal == nil {
		return nil
	}
	return &FatalError{c.guest, c.fatal}
}

// LogEnabled tells whether a line of this level would be kept.
func (c *Call) LogEnabled(level abi.Level) bool {
	return c.runtime.log.Enabled(context.Background(), slogLevel(level))
}

// Log writes one line of the guest's log. An equal warning or error of a guest is
// written once.
func (c *Call) Log(level abi.Level, msg []byte) {
	if c.logLines++; c.logLines > c.limits.LogLines || len(msg) > c.limits.LogBytes-c.logBytes {
		c.logDropped++
		return
	}
	c.logBytes += len(msg)
	if level >= abi.LevelWarn && !c.starting && !c.warned.first(uint64(level), msg) {
		return
	}
	c.runtime.log.Log(context.Background(), slogLevel(level), string(msg), "guest", c.guest, "request_id", c.identity.RequestID)
}

func slogLevel(l abi.Level) slog.Level {
	switch l {
	case abi.LevelDebug:
		return slog.LevelDebug
	case abi.LevelInfo:
		return slog.LevelInfo
	case abi.LevelWarn:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// EnterHost charges a host function and, with LeaveHost, brackets it, so that a panic
// in it is told apart from a trap of the guest. Engines call them. When the call has no
// more calls of host functions left, EnterHost panics in the function's stead.
func (c *Call) EnterHost(f *HostFunction) {
	c.inHost = f
	if c.wasm != nil {
		c.left = c.wasm.Fuel() - int64(min(f.Fuel, 1<<32))
	}
	if c.hostCalls++; c.hostCalls > c.limits.HostCalls {
		panic(c.exceed("limits.host_calls allows %d calls of host functions", c.limits.HostCalls))
	}
}

// LeaveHost hands what is left of the fuel to the guest.
func (c *Call) LeaveHost() {
	if c.wasm != nil {
		c.wasm.SetFuel(c.left)
	}
	c.inHost = nil
}

// InHost tells whether a host function runs, or has panicked.
func (c *Call) InHost() bool { return c.inHost != nil }

// ChargeCopy charges for the bytes that a host function is about to copy. When it is
// false the guest's fuel, or what may be copied for it, is used up: the function
// refuses, and the guest is stopped.
func (c *Call) ChargeCopy(bytes uint64) bool {
	if c.hostBytes += min(bytes, maxBytes); c.hostBytes > c.limits.HostBytes {
		c.exceed("limits.host_bytes allows host functions to copy %d bytes", c.limits.HostBytes)
		c.left = -1
		return false
	}
	if c.inHost == nil || c.wasm == nil {
		return true
	}
	c.left -= int64(min(bytes/64*c.inHost.PerB, 1<<32))
	return c.left >= 0
}

// exceed ends the call for a quota: the guest is stopped, now or at its next
// instruction, and that is what became of the call.
func (c *Call) exceed(what string, limit uint64) *Trap {
	c.program.exit = &Trap{TrapQuota, fmt.Sprintf(what+" in one call", limit)}
	return c.program.exit
}

// used is the fuel that the call has used so far.
func (c *Call) used() uint64 {
	left := c.left
	if c.inHost == nil {
		left = c.wasm.Fuel()
	}
	return uint64(max(c.budget-left, 0))
}

// Arm starts a deadline and Disarm stops it; Disarm is false when it has passed
// meanwhile. An engine that also stops guests by wall time calls them around a call.
func (c *Call) Arm(after time.Duration) {
	if c.timer == nil {
		c.timer = time.AfterFunc(after, func() {
			c.expired.Store(true)
			close(c.done)
		})
		return
	}
	c.timer.Reset(after)
}

// Disarm stops the deadline.
func (c *Call) Disarm() bool { return c.timer.Stop() }

// Deadline, Done, Err and Value make Call the context of the engine's call. Done is
// closed once, when a deadline passes; the instance is then never used again.
func (c *Call) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *Call) Done() <-chan struct{}       { return c.done }
func (c *Call) Value(any) any               { return nil }
func (c *Call) Err() error {
	if c.expired.Load() {
		return context.DeadlineExceeded
	}
	return nil
}

// commit carries out the call's effect.
func (c *Call) commit() (reason abi.Reason, detail string) {
	c.endLine()
	if e := c.effect; e != nil {
		c.effect = nil
		reason, detail = e.Commit()
	}
	c.settle()
	return reason, detail
}

// drop drops the call's effect.
func (c *Call) drop() {
	c.endLine()
	if e := c.effect; e != nil {
		c.effect = nil
		e.Drop()
	}
	c.settle()
}
