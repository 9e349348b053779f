package tck

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/hosts/worker"
	"github.com/kvrt/kvrt/runtime"
)

// Recorder is kvrt_fetch for a guest that is looked at. It costs what the real one costs
// and refuses the same arguments, but takes every source, keeps no hint and remembers
// what it was asked. With it come a kvrt_store and a kvrt_gpu that have no block, and the
// sessions and workers that kvrt_session and kvrt_worker tell of. The zero value is ready; it is used by one goroutine at a time.
type Recorder struct {
	// Answers are what the host says.
	Answers Answers
	// Effects are what the guest asked for, in the order in which it was decided.
	Effects []Effect
	// Lines are what the guest logged, as "warn: text".
	Lines []string
	// Sessions are the lineage indexes; without one the index is off.
	Sessions session.Set
	// Workers is the catalogue, which a runtime's configuration makes.
	Workers *worker.Catalogue
}

// scope: a policy asks about the sessions of its request's tenant and namespace.
func scope(c *runtime.Call) session.Scope {
	f := c.Context()
	if f == nil { // a handler's or a parser's call
		return session.Scope{}
	}
	return session.Scope{Namespace: string(f.Text(abi.OffContextFrameNamespace)), Tenant: string(f.Text(abi.OffContextFrameTenant))}
}

// Effect is one effect that a guest asked for.
type Effect struct {
	Function  string `json:"function"`            // such as kvrt_fetch.submit
	Arguments any    `json:"arguments,omitempty"` // a Submit, a Finish or Blocks
	Taken     bool   `json:"taken"`               // false: it was dropped
}

// Submit is a hint that a guest handed to the store.
type Submit struct {
	Source   *string  `json:"source"`
	Hashes   []uint64 `json:"hashes"`
	NoRetain bool     `json:"no_retain"`
}

func (s Submit) String() string {
	source := "none"
	if s.Source != nil {
		source = fmt.Sprintf("%q", *s.Source)
	}
	return fmt.Sprintf("{%s %d %t}", source, s.Hashes, s.NoRetain)
}

// Finish is the end of a request.
type Finish struct {
	Aborted bool `json:"aborted"`
}

// Reset forgets everything, and sets what the host says.
func (r *Recorder) Reset(answers Answers) {
	if r.Workers != nil {
		var all []hint.WorkerID
		for _, w := range r.Workers.List() {
			all = append(all, w.ID)
		}
		_ = r.Workers.Update(nil, all) // removing breaks no rule
	}
	*r = Recorder{Answers: answers, Workers: r.Workers}
}

// Submits are the hints that took effect.
func (r *Recorder) Submits() []Submit {
	var out []Submit
	for _, e := range r.Effects {
		if s, ok := e.Arguments.(Submit); ok && e.Taken {
			out = append(out, s)
		}
	}
	return out
}

// Name is the import module.
func (r *Recorder) Name() string { return abi.ModuleFetch }

// Functions are the functions of the module, with the signatures of the table.
func (r *Recorder) Functions() []runtime.HostFunction {
	return runtime.Functions(abi.ModuleFetch, map[string]func(*runtime.Call, []byte, []uint64){
		"submit": r.submit, "discard": r.discard, "finish": r.finish, "status": status, "prefetch": r.prefetch,
	})
}

func (r *Recorder) submit(c *runtime.Call, mem []byte, stack []uint64) {
	stack[0] = uint64(uint32(r.take(c, mem, uint32(stack[0]), uint32(stack[1]), uint32(stack[2]), uint32(stack[3]), abi.FetchFlag(uint32(stack[4])))))
}

func (r *Recorder) take(c *runtime.Call, mem []byte, source, sourceLen, hashes, count uint32, flags abi.FetchFlag) int32 {
	text, inside := window(mem, source, uint64(sourceLen))
	blocks, also := window(mem, hashes, 8*uint64(count))
	switch {
	case !inside:
		return c.Refuse(abi.ReasonInvalidPayload, "the source lies outside the guest's memory")
	case !also:
		return c.Refuse(abi.ReasonInvalidPayload, "the block hashes lie outside the guest's memory")
	case !c.ChargeCopy(uint64(sourceLen) + 8*uint64(count)):
		return c.Refuse(abi.ReasonLimitExceeded, "no fuel is left to copy the block hashes")
	case flags&^abi.FetchFlagNoRetain != 0:
		return c.Refuse(abi.ReasonInvalidPayload, "unknown flags of kvrt_fetch.submit")
	case source != 0 && sourceLen == 0:
		return c.Refuse(abi.ReasonInvalidPayload, "the source is empty; leave it out for local storage")
	case r.Answers.Submit != abi.ReasonNone:
		return c.Refuse(r.Answers.Submit, "says the test")
	case count == 0:
		return c.Refuse(abi.ReasonInvalidPayload, "a fetch hint needs at least one block hash, each of 8 bytes")
	}
	s := Submit{NoRetain: flags&abi.FetchFlagNoRetain != 0, Hashes: make([]uint64, count)}
	if source != 0 || sourceLen != 0 {
		named := string(text)
		s.Source = &named
	}
	for i := range s.Hashes {
		s.Hashes[i] = binary.LittleEndian.Uint64(blocks[8*i:])
	}
	return r.handOver(c, Effect{Function: abi.ModuleFetch + ".submit", Arguments: s})
}

func (r *Recorder) discard(c *runtime.Call, _ []byte, stack []uint64) {
	stack[0] = uint64(uint32(r.handOver(c, Effect{Function: abi.ModuleFetch + ".discard"})))
}

func (r *Recorder) finish(c *runtime.Call, _ []byte, stack []uint64) {
	how := uint32(stack[0])
	if how > 1 {
		stack[0] = uint64(uint32(c.Refuse(abi.ReasonInvalidPayload, "kvrt_fetch.finish takes 0 (ok) or 1 (aborted)")))
		return
	}
	stack[0] = uint64(uint32(r.handOver(c, Effect{Function: abi.ModuleFetch + ".finish", Arguments: Finish{how == 1}})))
}

// status says that there is no hint.
func status(c *runtime.Call, mem []byte, stack []uint64) {
	buf, inside := window(mem, uint32(stack[0]), uint64(uint32(stack[1])))
	if !inside {
		stack[0] = uint64(int64(c.Refuse(abi.ReasonInvalidPayload, "the buffer lies outside the guest's memory")))
		return
	}
	if len(buf) >= abi.SizeFetchStatus && c.ChargeCopy(abi.SizeFetchStatus) {
		clear(buf[:abi.SizeFetchStatus])
	}
	stack[0] = abi.SizeFetchStatus
}

func window(mem []byte, off uint32, n uint64) ([]byte, bool) {
	if uint64(off)+n > uint64(len(mem)) {
		return nil, false
	}
	return mem[off : uint64(off)+n], true
}

func (r *Recorder) handOver(c *runtime.Call, e Effect) int32 {
	if !c.Defer(asked{r, e}) {
		return c.Refuse(abi.ReasonLimitExceeded, "one call has one effect")
	}
	return 0
}

// asked is an effect that waits for the verdict.
type asked struct {
	r *Recorder
	e Effect
}

func (a asked) Commit() (abi.Reason, string) {
	a.e.Taken = true
	a.Drop()
	return abi.ReasonNone, ""
}

func (a asked) Drop() { a.r.Effects = append(a.r.Effects, a.e) }

// Log is a logger for a runtime: it keeps the guests' lines and drops the runtime's.
func (r *Recorder) Log() *slog.Logger { return slog.New(lines{r}) }

type lines struct{ r *Recorder }

func (l lines) Enabled(context.Context, slog.Level) bool { return true }
func (l lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l lines) WithGroup(string) slog.Handler            { return l }

// Handle tells a guest's line by its attributes, which are those two alone.
func (l lines) Handle(_ context.Context, line slog.Record) error {
	keys := ""
	line.Attrs(func(a slog.Attr) bool {
		keys += a.Key + " "
		return true
	})
	if keys == "guest request_id " {
		l.r.Lines = append(l.r.Lines, strings.ToLower(line.Level.String())+": "+line.Message)
	}
	return nil
}
