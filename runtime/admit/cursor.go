package admit

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// cursor reads part of a module. Its first violation moves it to its end, after
// which every read gives zero; so callers check ok at loop heads and after
// reads that they act upon, not after each read. Cursors of one module share
// their findings.
type cursor struct {
	buf      []byte // the whole module, so that pos is an offset in it
	pos, end int    // 0 <= pos <= end <= len(buf)
	found    *findings
	item     item
}

// item names what is being read. It becomes text only in a violation.
type item struct {
	what  string
	index int // -1: none
	name  string
}

func (it item) String() string {
	s := it.what
	if it.index >= 0 {
		s = fmt.Sprintf("%s %d", s, it.index)
	}
	if it.name != "" {
		s += " " + quote(it.name)
	}
	return s
}

func (c *cursor) ok() bool { return !c.found.halted }

func (c *cursor) left() int { return c.end - c.pos }

// at names the entry that is read next.
func (c *cursor) at(what string, index int) { c.item = item{what: what, index: index} }

// note records a violation that leaves the rest readable.
func (c *cursor) note(rule string, offset int, format string, args ...any) {
	c.found.add(&Error{Rule: rule, Item: c.item.String(), Offset: offset, Msg: fmt.Sprintf(format, args...)})
}

// fail records a violation after which nothing more can be read.
func (c *cursor) fail(rule string, offset int, format string, args ...any) {
	c.note(rule, offset, format, args...)
	c.found.halted = true
	c.pos = c.end
}

// part returns a cursor over the next n bytes, which are skipped here. The
// caller has compared n with left.
func (c *cursor) part(n int) cursor {
	p := *c
	p.end = c.pos + n
	c.pos = p.end
	return p
}

func (c *cursor) byte() byte {
	if c.pos >= c.end {
		c.fail(RuleTruncated, c.pos, "one more byte is needed here; the file is cut short or damaged, build it again")
		return 0
	}
	b := c.buf[c.pos]
	c.pos++
	return b
}

// take returns the next n bytes, sharing the module's memory, nil on a
// violation.
func (c *cursor) take(n uint32) []byte {
	if uint64(n) > uint64(c.left()) {
		c.fail(RuleTruncated, c.pos, "%d bytes are needed here and %d remain; the file is cut short or damaged, build it again", n, c.left())
		return nil
	}
	b := c.buf[c.pos : c.pos+int(n) : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) u32() uint32 { return uint32(c.unsigned(32)) }

func (c *cursor) u64() uint64 { return c.unsigned(64) }

// unsigned reads a LEB128 integer of so many bits.
func (c *cursor) unsigned(bits uint) uint64 {
	start := c.pos
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := c.byte()
		// In the last byte that the width allows, only the width's own
		// bits may be set: neither more payload nor a continuation.
		if rest := bits - shift; rest < 7 && b>>rest != 0 {
			c.fail(RuleLEB128, start, "not an unsigned integer of %d bits; the file is damaged or its encoder broken", bits)
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

// signed reads a signed LEB128 integer of so many bits.
func (c *cursor) signed(bits uint) int64 {
	start := c.pos
	var v int64
	for shift := uint(0); ; shift += 7 {
		b := c.byte()
		// In the last byte that the width allows, the bits from the
		// sign upward must all be the same, and none may continue.
		if rest := bits - shift; rest < 7 {
			if high := b >> (rest - 1); high != 0 && high != 0x7f>>(rest-1) {
				c.fail(RuleLEB128, start, "not a signed integer of %d bits; the file is damaged or its encoder broken", bits)
				return 0
			}
		}
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if shift += 7; shift < 64 && b&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
}

// count reads the length of a vector whose entries take at least size bytes
// each. What it returns may be allocated for: the bytes that remain cover it.
func (c *cursor) count(what string, size int) int {
	return c.countWithin(what, size, math.MaxUint32, "")
}

// countWithin is count for a vector that a limit bounds, the one of that rule.
func (c *cursor) countWithin(what string, size int, limit uint64, rule string) int {
	offset := c.pos
	n := uint64(c.u32())
	if n > limit {
		c.fail(rule, offset, "%d %s, at most %d are allowed; make the module smaller or raise the limit", n, what, limit)
		return 0
	}
	if n > uint64(c.left()/size) {
		c.fail(RuleCount, offset, "%d %s are declared, but only %d bytes follow; the file is cut short or damaged", n, what, c.left())
		return 0
	}
	return int(n)
}

// name reads a name of at most limit bytes. It gives false for a name that
// breaks a rule; reading may go on after it.
func (c *cursor) name(limit int) (string, bool) {
	offset := c.pos
	b := c.take(c.u32())
	if len(b) > limit {
		c.note(RuleNameBytes, offset, "a name of %d bytes, at most %d are allowed; shorten it", len(b), limit)
		return "", false
	}
	if !utf8.Valid(b) {
		c.note(RuleUTF8, offset, "the name %s is not valid UTF-8; rename it", quote(string(b)))
		return "", false
	}
	return string(b), c.ok()
}
