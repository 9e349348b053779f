package tck

import (
	"fmt"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// maxFrame is the largest frame in bytes that a guest is asked to take.
const maxFrame = 64 << 20

// arena asks for larger and larger buffers, until the guest refuses. That it may do at
// any size above the first; but what it hands out must be one, and after a refusal it
// must hand out a small one again.
func (p *prober) arena() {
	p.restart()
	refused := uint32(0)
	for size := uint32(2 * abi.FirstArena); uint64(size) <= min(maxFrame, p.solo.Limits().Memory) && p.err == nil; size *= 2 {
		ret, arena, err := p.solo.Arena(p.ctx, size)
		if trap := trapOf(err); trap != nil {
			if trap.Kind == runtime.TrapOutOfFuel {
				p.note("kvrt_arena(%d) takes more than the %d of fuel of a call; the instance is lost", size, p.solo.Limits().Fuel)
			} else {
				p.broken(RuleArena, fmt.Sprintf("kvrt_arena(%d)", size), trap.Msg+": return 0 for a size that there is no room for")
			}
			p.restart()
			break
		}
		if p.fail(err); err != nil {
			return
		}
		if arena.Len == 0 {
			if refused = size; ret > 0 {
				p.broken(RuleArena, fmt.Sprintf("kvrt_arena(%d)", size), badArena(ret, size))
			}
			break
		}
		p.report.LargestFrame = size
	}
	if p.err != nil {
		return
	}
	if refused > 0 {
		if ret, arena, err := p.solo.Arena(p.ctx, abi.FirstArena); err != nil || arena.Len == 0 {
			p.broken(RuleArena, fmt.Sprintf("kvrt_arena(%d)", abi.FirstArena), fmt.Sprintf("it hands out nothing (%#x, %v) after it refused %d bytes: no call would follow", ret, err, refused))
			return
		}
	}
	p.large()
}

// badArena says what is wrong with a buffer.
func badArena(ret int64, asked uint32) string {
	off, size := uint32(uint64(ret)>>32), uint32(ret)
	what := "it is outside the memory"
	switch {
	case off == 0:
		what = "it begins at 0, which is nowhere"
	case off%8 != 0:
		what = "it is not 8-byte aligned"
	case size < asked:
		what = "it is smaller than what was asked for"
	}
	return fmt.Sprintf("a buffer of %d bytes at %d: %s; return 0 for a size that there is no room for", size, off, what)
}

// large sends a frame of the size that the guest has just handed out a buffer for.
func (p *prober) large() {
	m := p.solo.Info().Manifest
	text := `{"text":"` + strings.Repeat("x", int(min(p.report.LargestFrame, 1<<20)/2)) + `"}`
	var inputs []input
	if m.Has(abi.RoleHandler) {
		inputs = append(inputs, handle(m, p.report.Start.Features, "a large frame", actionText(m.ActionTypes[0].Type, "1.0", text))...)
	}
	if m.Has(abi.RoleParser) {
		inputs = append(inputs, input{name: "a large document", role: abi.RoleParser, frame: ParseFrame(abi.FormatJSON, []byte(text), "r1", m.Dialects[0])})
	}
	for i := range inputs {
		r := p.call(&inputs[i], false)
		if p.err == nil {
			p.judge(&inputs[i], &r)
		}
	}
}
