package hint

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// decoder is a cursor over one document. Finished nodes of the containers that are
// still open wait on a stack; a container's nodes move to out in one run when it
// closes, so that children lie before their parents and both encodings of one
// document give the same bytes.
type decoder struct {
	src     []byte
	pos     int
	msgpack bool
	out     []byte // the frame under construction
	side    []byte // what is checked but not kept
	nodes   []byte // the stack, abi.SizeNode bytes each
	base    int    // index in out that offsets are relative to, a multiple of 8
	other   int    // base of side
	limit   int    // bytes of out and nodes together
	depth   int    // open containers, the document's root included

	tooDeep   bool // msgpack: something was nested deeper than abi.MaxDepth
	nonFinite bool // msgpack: a NaN or an infinity was seen

	table []uint32 // open addressing over the keys of one map, index + 1
	seed  maphash.Seed
	sown  bool

	errPos int
	errMsg string
}

// begin points the cursor at src and out.
func (d *decoder) begin(src, out []byte, limit int) {
	d.src, d.pos, d.out = src, 0, out
	d.side, d.nodes = d.side[:0], d.nodes[:0]
	d.base, d.other, d.limit, d.depth = 0, 0, limit, 0
	d.tooDeep, d.nonFinite = false, false
	d.errMsg = ""
}

// keepBytes is how large a buffer may be to be kept for the next document.
const keepBytes = 1 << 20

// release drops the views of the caller's bytes, and buffers that one unusual
// document blew up.
func (d *decoder) release() {
	d.src = nil
	if cap(d.out) > keepBytes {
		d.out = nil
	}
	if cap(d.side) > keepBytes {
		d.side = nil
	}
	if cap(d.nodes) > keepBytes {
		d.nodes = nil
	}
	if cap(d.table) > keepBytes/4 {
		d.table = nil
	}
}

// fail notes the first fault and returns false.
func (d *decoder) fail(pos int, msg string) bool {
	if d.errMsg == "" {
		d.errPos, d.errMsg = pos, msg
	}
	return false
}

// want fails at the cursor: what was expected is not there.
func (d *decoder) want(what string) bool {
	if d.pos >= len(d.src) {
		return d.fail(len(d.src), "unexpected end, expected "+what)
	}
	return d.fail(d.pos, "unexpected byte "+quoteByte(d.src[d.pos])+", expected "+what)
}

func quoteByte(c byte) string {
	if c >= 0x80 {
		return "0x" + strconv.FormatUint(uint64(c), 16)
	}
	return strconv.QuoteRuneToASCII(rune(c))
}

// room fails when n more bytes would make the frame larger than its limit.
func (d *decoder) room(n int) bool {
	return n <= d.limit-len(d.out)-len(d.nodes) ||
		d.fail(d.pos, "the decoded frame would be larger than "+strconv.Itoa(d.limit)+" bytes")
}

// push puts a finished node on the stack.
func (d *decoder) push(n abi.Node) bool {
	if !d.room(abi.SizeNode) {
		return false
	}
	d.nodes = abi.AppendNode(d.nodes, n)
	return true
}

// here is the offset of the next byte of out.
func (d *decoder) here() int { return len(d.out) - d.base }

// swap turns to side and back: what is decoded in between is checked, not kept.
func (d *decoder) swap() {
	d.out, d.side = d.side, d.out
	d.base, d.other = d.other, d.base
}

// closeArray moves the nodes above mark to out.
func (d *decoder) closeArray(mark int) abi.Node {
	n := len(d.nodes) - mark
	d.out = abi.Align(d.out)
	off := d.here()
	d.out = append(d.out, d.nodes[mark:]...)
	d.nodes = d.nodes[:mark]
	return abi.Node{Tag: abi.TagArray, Len: uint32(n / abi.SizeNode), Val: uint64(off)}
}

// closeMap moves the entries above mark to out. The second result is the position of
// a key that repeats an earlier one, or -1.
func (d *decoder) closeMap(mark int) (abi.Node, int) {
	n := len(d.nodes) - mark
	if n > abi.SizeEntry {
		if dup := d.duplicate(d.nodes[mark:], d.out[d.base:]); dup >= 0 {
			d.nodes = d.nodes[:mark]
			return abi.Node{}, dup
		}
	}
	d.out = abi.Align(d.out)
	off := d.here()
	d.out = append(d.out, d.nodes[mark:]...)
	d.nodes = d.nodes[:mark]
	return abi.Node{Tag: abi.TagMap, Len: uint32(n / abi.SizeEntry), Val: uint64(off)}, -1
}

// u64sToNodes undoes an optimistic u64s array: the run of out from start becomes
// nodes on the stack, and out is cut back to was, where it ended before the array.
func (d *decoder) u64sToNodes(was, start int) bool {
	run := d.out[start:]
	if !d.room(len(run)) {
		return false
	}
	for ; len(run) >= 8; run = run[8:] {
		d.nodes = abi.AppendNode(d.nodes, abi.Node{Tag: abi.TagU64, Val: binary.LittleEndian.Uint64(run)})
	}
	d.out = d.out[:was]
	return true
}

// ignored remembers a key that is not kept, to find a second one like it; the key's
// bytes are in side. pos is where the key stands in the document.
func (d *decoder) ignored(key abi.Node, pos int) bool {
	return d.push(key) && d.push(abi.Node{Tag: abi.TagU64, Val: uint64(pos)})
}

// closeIgnored checks the ignored keys above mark and forgets them.
func (d *decoder) closeIgnored(mark, side int) bool {
	if len(d.nodes) == mark {
		return true
	}
	if dup := d.duplicate(d.nodes[mark:], d.side[d.other:]); dup >= 0 {
		at := abi.GetNode(d.nodes, uint32(mark+dup*abi.SizeEntry+abi.OffEntryVal))
		return d.fail(int(at.Val), msgDuplicate)
	}
	d.nodes, d.side = d.nodes[:mark], d.side[:side]
	return true
}

const msgDuplicate = "duplicate key"

// fewKeys is how many keys are compared one with another; larger maps go through a
// hash table, so that time stays linear.
const fewKeys = 16

// duplicate returns the position of the first entry whose key repeats an earlier one,
// or -1. Keys that are lists or maps are not compared.
func (d *decoder) duplicate(entries []byte, base abi.Base) int {
	if len(entries) > fewKeys*abi.SizeEntry {
		return d.duplicateOfMany(entries, base)
	}
	for i := abi.SizeEntry; i < len(entries); i += abi.SizeEntry {
		head := binary.LittleEndian.Uint64(entries[i:])
		for j := 0; j < i; j += abi.SizeEntry {
			if binary.LittleEndian.Uint64(entries[j:]) == head &&
				sameKey(base, abi.GetNode(entries, uint32(i)), abi.GetNode(entries, uint32(j))) {
				return i / abi.SizeEntry
			}
		}
	}
	return -1
}

func (d *decoder) duplicateOfMany(entries []byte, base abi.Base) int {
	n := len(entries) / abi.SizeEntry
	size := 64
	for size < 2*n {
		size *= 2
	}
	if cap(d.table) < size {
		d.table = make([]uint32, size)
	}
	table := d.table[:size]
	clear(table)
	if !d.sown {
		d.seed, d.sown = maphash.MakeSeed(), true
	}
	for i := range n {
		key := abi.GetNode(entries, uint32(i*abi.SizeEntry))
		var h uint64
		switch key.Tag {
		case abi.TagString, abi.TagBytes, abi.TagNumber, abi.TagExt:
			h = maphash.Bytes(d.seed, base.Bytes(key))
		case abi.TagArray, abi.TagMap, abi.TagU64s:
			continue
		default:
			h = maphash.Bytes(d.seed, entries[i*abi.SizeEntry:][:abi.SizeNode])
		}
		slot := h & uint64(size-1)
		for table[slot] != 0 {
			if sameKey(base, key, abi.GetNode(entries, (table[slot]-1)*abi.SizeEntry)) {
				return i
			}
			slot = (slot + 1) & uint64(size-1)
		}
		table[slot] = uint32(i + 1)
	}
	return -1
}

// sameKey compares two keys of one map: tag and value or bytes.
func sameKey(base abi.Base, a, b abi.Node) bool {
	if a.Tag != b.Tag || a.Len != b.Len || a.Ext != b.Ext {
		return false
	}
	switch a.Tag {
	case abi.TagString, abi.TagBytes, abi.TagNumber, abi.TagExt:
		return bytes.Equal(base.Bytes(a), base.Bytes(b))
	case abi.TagArray, abi.TagMap, abi.TagU64s:
		return false
	}
	return a.Val == b.Val
}

// maxOffset bounds everything that an offset of the ABI points into.
const maxOffset = math.MaxInt32
