package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// firstArena is the frame size in bytes that a guest is asked to take at init: most
// envelopes fit, so that the arena is asked for once.
const firstArena = 4096

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
	stack    [4]uint64
}

// newInstance instantiates the module and brings it up: _initialize, arena, init.
func (g *guest) newInstance(ctx context.Context) (*instance, error) {
	w, err := g.module.Instantiate(ctx)
	if err != nil {
		return nil, fmt.Errorf("instantiate: %w", err)
	}
	in := &instance{wasm: w, call: newCall(g.runtime, g.spec.Name)}
	if err := in.start(g); err != nil {
		w.Close()
		return nil, err
	}
	return in, nil
}

func (in *instance) start(g *guest) error {
	in.call.begin(hint.Identity{}, g.limits.InitDeadline)
	if in.wasm.Has(ExportInitialize) {
		if err := in.wasm.Call(in.call, ExportInitialize, in.stack[:0]); err != nil {
			return fmt.Errorf("_initialize: %w", err)
		}
	}
	if err := in.grow(max(firstArena, uint32(len(g.initFrame)))); err != nil {
		return fmt.Errorf("kvrt_arena: %w", err)
	}
	copy(in.wasm.Memory()[in.arena:], g.initFrame)
	in.frame = uint32(len(g.initFrame))
	ret, err := in.run(ExportInit, 0)
	in.call.drop()
	if err != nil {
		return fmt.Errorf("kvrt_init: %w", err)
	}
	switch {
	case ret < 0:
		return fmt.Errorf("kvrt_init refused: %s", refusal(abi.Reason(-ret), in.call))
	case ret > 0:
		raw, err := in.answer(nil, uint64(ret))
		if err != nil {
			return fmt.Errorf("kvrt_init: %w", err)
		}
		a, err := abi.CheckAnswer(raw)
		if err != nil {
			return fmt.Errorf("kvrt_init: %w", err)
		}
		if a.Status != abi.StatusAccepted {
			return fmt.Errorf("kvrt_init refused: %s: %s", a.Reason, a.Detail)
		}
		in.features = a.Features & hostFeatures
	}
	return nil
}

func refusal(r abi.Reason, c *Call) string {
	if c.reason == r && c.detail != "" {
		return r.String() + ": " + c.detail
	}
	return r.String()
}

// errNoRoom is a guest's refusal of a frame buffer.
var errNoRoom = errors.New("the guest has no room for the frame")

// grow asks the guest for a frame buffer of at least n bytes. The guest decides where
// it lies and may refuse.
func (in *instance) grow(n uint32) error {
	in.stack[0] = uint64(n)
	if err := in.wasm.Call(in.call, ExportArena, in.stack[:1]); err != nil {
		return err
	}
	off, size := uint32(in.stack[0]>>32), uint32(in.stack[0])
	if int64(in.stack[0]) <= 0 || size < n || off == 0 || off%8 != 0 || uint64(off)+uint64(size) > uint64(len(in.wasm.Memory())) {
		in.size = 0
		return errNoRoom
	}
	in.arena, in.size = off, size
	return nil
}

// write copies a frame into the guest. An error other than errNoRoom is a trap.
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
	return nil
}

// run calls a role export on the frame that was written last.
func (in *instance) run(f Export, position uint32) (int64, error) {
	in.stack[0], in.stack[1], in.stack[2] = uint64(in.arena), uint64(in.frame), uint64(position)
	err := in.wasm.Call(in.call, f, in.stack[:3])
	return int64(in.stack[0]), err
}

// answer appends the answer that a role returned a reference to. It may lie anywhere
// in memory but over the frame.
func (in *instance) answer(dst []byte, ret uint64) ([]byte, error) {
	off, n := ret>>32, ret&0xffffffff
	mem := in.wasm.Memory()
	if n < abi.SizeAnswer || off+n > uint64(len(mem)) {
		return nil, fmt.Errorf("an answer of %d bytes at %d, outside %d bytes of memory", n, off, len(mem))
	}
	if off < uint64(in.arena)+uint64(in.frame) && uint64(in.arena) < off+n {
		return nil, fmt.Errorf("an answer at %d that overlaps the frame at %d", off, in.arena)
	}
	return append(dst, mem[off:off+n]...), nil
}
