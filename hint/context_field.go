package hint

import (
	"strconv"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

// The readers of single fields. null is absent; what is of another kind fails, with the
// field's path.

// words are the values of a field, in the order of their numbers from 1 on.
type words []string

func (w words) any() string { return "one of " + strings.Join(w, ", ") }

func legs() words      { return words{"aggregated", "prefill", "decode"} }
func triggers() words  { return words{"user_message", "tool_result", "other"} }
func hashKinds() words { return words{"engine", "sequence", "local"} }

// optional reads a text that may be null.
func (c *Context) optional(pos int, name string) (abi.Span, int) {
	at := c.d.skip(pos)
	n, end := c.d.value(at)
	switch {
	case end >= 0 && n.Tag == abi.TagString:
		return spanOf(n), end
	case end >= 0 && n.Tag == abi.TagNull:
		return abi.Span{}, end
	}
	return abi.Span{}, c.wrong(at, end, name, "a string", n)
}

func (c *Context) string(pos int, name string, off uint32) int {
	s, pos := c.optional(pos, name)
	abi.PutSpan(c.d.out, off, s)
	return pos
}

// integer reads an integer in [0, most] that may be null.
func (c *Context) integer(pos int, name string, most uint64) (v uint64, present bool, _ int) {
	at := c.d.skip(pos)
	n, end := c.d.value(at)
	switch {
	case end >= 0 && n.Tag == abi.TagU64 && n.Val <= most:
		return n.Val, true, end
	case end >= 0 && n.Tag == abi.TagNull:
		return 0, false, end
	}
	return 0, false, c.wrong(at, end, name, wantUpTo(most), n)
}

const wantU64 = "an integer in [0, 2^64)"

func wantUpTo(most uint64) string {
	if most < 1<<32 {
		return "an integer in [0, 2^32)"
	}
	return wantU64
}

func (c *Context) count32(pos int, name string, off uint32, bit abi.Has) int {
	v, present, pos := c.integer(pos, name, 1<<32-1)
	if present {
		abi.PutU32(c.d.out, off, uint32(v))
		c.present |= bit
	}
	return pos
}

func (c *Context) count64(pos int, name string, off uint32, bit abi.Has) int {
	v, present, pos := c.integer(pos, name, 1<<64-1)
	if present {
		abi.PutU64(c.d.out, off, v)
		c.present |= bit
	}
	return pos
}

func (c *Context) flag(pos int, name string, off uint32, bit abi.Has) int {
	at := c.d.skip(pos)
	n, end := c.d.value(at)
	switch {
	case end >= 0 && n.Tag == abi.TagBool:
		abi.PutU32(c.d.out, off, uint32(n.Val))
		c.present |= bit
	case end < 0 || n.Tag != abi.TagNull:
		return c.wrong(at, end, name, "true or false", n)
	}
	return end
}

// one reads one of a few words, and gives its number; 0 when it is null.
func (c *Context) one(pos int, name string, list words) (v uint32, present bool, _ int) {
	d := &c.d
	at, was := d.skip(pos), len(d.out)
	n, end := d.value(at)
	if end < 0 || n.Tag == abi.TagNull {
		return 0, false, end
	}
	if n.Tag == abi.TagString {
		text := abi.Base(d.out).Bytes(n)
		for i, w := range list {
			if string(text) == w {
				d.out = d.out[:was]
				return uint32(i + 1), true, end
			}
		}
	}
	return 0, false, c.wrong(at, end, name, list.any(), n)
}

func (c *Context) word(pos int, name string, off uint32, list words) int {
	v, _, pos := c.one(pos, name, list)
	abi.PutU32(c.d.out, off, v)
	return pos
}

// wrong fails at at, unless reading has failed before: a field holds something else than
// it should. It returns what end is then.
func (c *Context) wrong(at, end int, name, want string, n abi.Node) int {
	if end < 0 {
		return end
	}
	return c.d.fail(at, c.path(name)+" must be "+want+", not "+c.told(n))
}

// path spells where a field of the mapping that is being read stands; "" is the mapping.
func (c *Context) path(name string) string {
	in, inner := c.in, ""
	if in == inMatched {
		in, inner = c.matchedOf, "matched_blocks."
	}
	var outer string
	switch in {
	case inContext:
		return inner + name
	case inPartition:
		outer = "partition"
	case inSession:
		outer = "session"
	case inSelected:
		outer = "selected"
	case inCandidate:
		outer = "candidates[" + strconv.Itoa(c.index) + "]"
	case inEvent:
		outer = "events[" + strconv.Itoa(c.index) + "]"
	}
	if name == "" {
		return outer
	}
	return outer + "." + inner + name
}

// toldBytes is how much of a text a message shows.
const toldBytes = 64

// told is a value as messages show it.
func (c *Context) told(n abi.Node) string {
	base := abi.Base(c.d.out)
	switch n.Tag {
	case abi.TagBool:
		return strconv.FormatBool(n.Bool())
	case abi.TagU64, abi.TagI64, abi.TagF64:
		return string(appendText(nil, n, nil))
	case abi.TagNumber:
		return string(base.Bytes(n)[:min(n.Len, toldBytes)])
	case abi.TagString:
		return "the string " + strconv.QuoteToASCII(string(base.Bytes(n)[:min(n.Len, toldBytes)]))
	}
	return gotOf(n.Tag).String()
}
