package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// maxFrame is the largest frame in bytes that any guest is given.
const maxFrame = 1 << 30

// instance is a guest instance with what a call needs close at hand.
type instance struct {
	wasm     Instance
	call     *Call
	arena    uint32 // offset of the frame buffer in guest memory
	size     uint32 // of the frame buffer
	frame    uint32 // length of the frame that was written last
	features abi.Feature
	wear     wear
	started  uint64 // fuel that the start took
	stack    [4]uint64
	_        [64]byte // instances are made one after the other, and used by different processors
}

// newInstance instantiates the module and brings it up: _initialize, arena, init. It
// tells what fuel all of it took, also where it fails.
func (g *guest) newInstance(ctx context.Context) (in *instance, effort uint64, err error) {
	w, err := g.module.Instantiate(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("instantiate: %w", err)
	}
	in = &instance{wasm: w, call: newCall(g.runtime, g.spec.Name, &g.limits, w)}
	in.call.warned = &g.warned
	err = in.start(g)
	in.started = in.call.used()
	if effort = in.started; err == nil && w.Has(ExportIdle) {
		if err = in.idle(g); err != nil {
			err = fmt.Errorf("kvrt_idle: %w", err)
		}
		effort += in.call.used()
	}
	if err != nil {
		w.Close()
		return nil, effort, err
	}
	in.wear = wear{}
	return in, effort, nil
}

func (in *instance) start(g *guest) error {
	in.call.begin(hint.Identity{}, g.limits.InitFuel)
	in.call.starting = true
	defer func() {
		in.call.drop()
		in.call.starting = false
	}()
	if in.wasm.Has(ExportInitialize) {
		if err := in.invoke(ExportInitialize, in.stack[:0]); err != nil {
			return fmt.Errorf("_initialize: %w", err)
		}
	}
	if err := in.grow(max(abi.FirstArena, uint32(len(g.initFrame)))); err != nil {
		return fmt.Errorf("kvrt_arena: %w", err)
	}
	copy(in.wasm.Memory()[in.arena:], g.initFrame)
	in.frame = uint32(len(g.initFrame))
	ret, err := in.run(ExportInit, 0)
	if err == nil {
		err = in.call.failure()
	}
	if err != nil {
		return fmt.Errorf("kvrt_init: %w", err)
	}
	a, err := in.read(ret)
	switch {
	case err != nil:
		return fmt.Errorf("kvrt_init: %w", err)
	case a.Status == abi.StatusRejected:
		return fmt.Errorf("kvrt_init refused: %s: %s", a.Reason, a.Detail)
	}
	in.features = a.Features & hostFeatures
	return nil
}

// read takes a return value for what it says, off the dispatch path.
func (in *instance) read(ret int64) (abi.Answer, error) {
	ref, ok := abi.SplitResult(ret)
	switch {
	case !ok:
		return abi.Answer{}, errResult
	case ref.Reason != abi.ReasonNone:
		detail := "no detail"
		if ref.Reason == in.call.reason {
			detail = in.call.detail
		}
		return abi.Answer{Status: abi.StatusRejected, Reason: ref.Reason, Detail: []byte(detail)}, nil
	case ref.Len == 0:
		return abi.Answer{Status: abi.StatusAccepted}, nil
	}
	raw, err := in.answer(nil, ref)
	if err != nil {
		return abi.Answer{}, err
	}
	return abi.CheckAnswer(raw)
}

// errNoRoom is a guest's refusal of a frame buffer.
var errNoRoom = errors.New("the guest has no room for the frame")

// grow asks the guest for a frame buffer of at least n bytes. The guest decides where
// it lies and may refuse.
func (in *instance) grow(n uint32) error {
	in.stack[0] = uint64(n)
	err := in.invoke(ExportArena, in.stack[:1])
	in.call.drop() // handing out memory has no effect on the world
	if err == nil {
		err = in.call.failure()
	}
	if err != nil {
		return err
	}
	var ok bool
	if in.arena, in.size, ok = abi.ArenaResult(int64(in.stack[0]), n, uint64(len(in.wasm.Memory()))); !ok {
		in.size = 0
		return errNoRoom
	}
	return nil
}

// write copies a frame into the guest. An error other than errNoRoom ends the instance.
func (in *instance) write(frame []byte) error {
	if uint64(len(frame)) > uint64(in.size) {
		if len(frame) > maxFrame {
			return errNoRoom
		}
		if err := in.grow(uint32(len(frame))); err != nil {
			return err
		}
	}
	in.frame = uint32(copy(in.wasm.Memory()[in.arena:], frame))
	in.wear.bytes += uint64(in.frame)
	return nil
}

// run calls a role export on the frame that was written last.
func (in *instance) run(f Export, position uint32) (int64, error) {
	in.stack[0], in.stack[1], in.stack[2] = uint64(in.arena), uint64(in.frame), uint64(position)
	in.wear.calls++
	err := in.invoke(f, in.stack[:3])
	return int64(in.stack[0]), err
}

// answer appends the answer that a role returned a reference to. It may lie anywhere
// in memory but over the frame.
func (in *instance) answer(dst []byte, ref abi.Result) ([]byte, error) {
	mem := in.wasm.Memory()
	if most := in.call.limits.OutputBytes; ref.Len > most {
		return nil, fmt.Errorf("an answer of %d bytes: limits.output_bytes allows %d", ref.Len, most)
	}
	if !ref.Fits(uint64(len(mem)), abi.Span{Off: in.arena, Len: in.frame}) {
		return nil, fmt.Errorf("an answer of %d bytes at %d: it is outside %d bytes of memory, or over the frame of %d bytes at %d", ref.Len, ref.Off, len(mem), in.frame, in.arena)
	}
	in.wear.bytes += uint64(ref.Len)
	return append(dst, mem[ref.Off:uint64(ref.Off)+uint64(ref.Len)]...), nil
}

// errResult is a return value that the ABI does not allow.
var errResult = errors.New("the guest returned what is neither 0, a reason of its own, nor the place of an answer")

// tooMany says that an envelope that the guest answered has more actions than it may.
func (in *instance) tooMany(envelope abi.EnvelopeFrame) string {
	if n, most := envelope.Count(), in.call.limits.Actions; n > most {
		return fmt.Sprintf("%d actions: limits.actions allows %d", n, most)
	}
	return ""
}
