package hint

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// decoder reads one document. Finished nodes of the containers that are still open
// wait on a stack; a container's nodes move to out in one run when it closes, so that
// children lie before their parents and both encodings of one document give the same
// bytes.
type decoder struct {
	src     []byte
	msgpack bool
	out     []byte // the frame under construction
	side    []byte // what is checked but not kept
	nodes   []byte // the stack, abi.SizeNode bytes each
	base    int    // index in out that offsets are relative to, a multiple of 8
	other   int    // base of side
	limit   int    // bytes of out and nodes together
	depth   int    // open containers of the value that is read, its root included
	slow    int    // numbers that took strconv long

	tooDeep   bool // msgpack: something was nested deeper than abi.MaxDepth
	nonFinite bool // msgpack: a NaN or an infinity was seen

	// What copyTree saw that one encoding cannot hold.
	notJSON, notMsgpack bool

	table []uint32 // open addressing over the keys of one map, index + 1
	seed  maphash.Seed
	sown  bool

	errPos int
	errMsg string
}

// keepBytes is how large a buffer may be to be kept for the next document whatever
// that is. A larger out is kept as long as documents fill it.
const keepBytes = 1 << 20

// begin points the decoder at src and out.
func (d *decoder) begin(src, out []byte, limit int) {
	d.src, d.out = src, out
	if cap(d.side)|cap(d.nodes)|cap(d.table) >= keepBytes {
		d.side, d.nodes, d.table = nil, nil, nil
	}
	d.side, d.nodes = d.side[:0], d.nodes[:0]
	d.base, d.other, d.limit, d.depth, d.slow = 0, 0, limit, 0, 0
	d.tooDeep, d.nonFinite = false, false
	d.errMsg = ""
}

// fail notes the first fault and returns -1, the position after it.
func (d *decoder) fail(pos int, msg string) int {
	if d.errMsg == "" {
		d.errPos, d.errMsg = pos, msg
	}
	return -1
}

// want fails at pos: what was expected is not there.
func (d *decoder) want(pos int, what string) int {
	if pos >= len(d.src) {
		return d.fail(len(d.src), "unexpected end, expected "+what)
	}
	return d.fail(pos, "unexpected byte "+quoteByte(d.src[pos])+", expected "+what)
}

func quoteByte(c byte) string {
	if c >= 0x80 {
		return "0x" + strconv.FormatUint(uint64(c), 16)
	}
	return strconv.QuoteRuneToASCII(rune(c))
}

// room fails when n more bytes would make the frame larger than its limit.
func (d *decoder) room(pos, n int) bool {
	return n <= d.limit-len(d.out)-len(d.nodes) || d.noRoom(pos)
}

func (d *decoder) noRoom(pos int) bool { return d.fail(pos, d.tooLarge()) >= 0 }

func (d *decoder) tooLarge() string {
	return "the decoded frame would be larger than " + strconv.Itoa(d.limit) + " bytes"
}

// push puts a finished node on the stack.
func (d *decoder) push(pos int, n abi.Node) bool {
	if !d.room(pos, abi.SizeNode) {
		return false
	}
	d.nodes = abi.AppendNode(d.nodes, n)
	return true
}

// pushEntry puts a finished entry on the stack.
func (d *decoder) pushEntry(pos int, key, val abi.Node) bool {
	if !d.room(pos, abi.SizeEntry) {
		return false
	}
	top := len(d.nodes)
	d.nodes = extend(d.nodes, abi.SizeEntry)
	e := (*[abi.SizeEntry]byte)(d.nodes[top:])
	binary.LittleEndian.PutUint64(e[0:], head(key))
	binary.LittleEndian.PutUint64(e[8:], key.Val)
	binary.LittleEndian.PutUint64(e[16:], head(val))
	binary.LittleEndian.PutUint64(e[24:], val.Val)
	return true
}

// head is the first half of a node's bytes.
func head(n abi.Node) uint64 { return uint64(n.Tag) | uint64(n.Ext)<<8 | uint64(n.Len)<<32 }

// extend makes b n bytes longer. The new bytes may hold anything.
func extend(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		return slices.Grow(b, n)[:len(b)+n]
	}
	return b[:len(b)+n]
}

// align appends zeros up to the next multiple of 8. It is abi.Align for buffers that
// have room to spare.
func align(b []byte) []byte {
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0)[:(len(b)+7)&^7]
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
	off := d.move(mark)
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
	off := d.move(mark)
	return abi.Node{Tag: abi.TagMap, Len: uint32(n / abi.SizeEntry), Val: uint64(off)}, -1
}

// move moves the nodes above mark to out and returns their offset.
func (d *decoder) move(mark int) int {
	d.out = align(d.out)
	off := d.here()
	if run := d.nodes[mark:]; len(run) > fewKeys*abi.SizeEntry {
		d.out = append(d.out, run...)
	} else { // word by word: wider loads would wait for the words that were just stored
		to := len(d.out)
		d.out = extend(d.out, len(run))
		dst := d.out[to:]
		for len(run) >= 8 && len(dst) >= 8 {
			binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(run))
			run, dst = run[8:], dst[8:]
		}
	}
	d.nodes = d.nodes[:mark]
	return off
}

// u64sToNodes undoes an optimistic u64s array: the run of out from start becomes
// nodes on the stack, and out is cut back to was, where it ended before the array. It
// returns pos.
func (d *decoder) u64sToNodes(pos, was, start int) int {
	run := d.out[start:]
	if !d.room(pos, len(run)) {
		return -1
	}
	for ; len(run) >= 8; run = run[8:] {
		d.nodes = abi.AppendNode(d.nodes, abi.Node{Tag: abi.TagU64, Val: binary.LittleEndian.Uint64(run)})
	}
	d.out = d.out[:was]
	return pos
}

// ignored remembers a key that is not kept, to find a second one like it; the key's
// bytes are in side. pos is where the key stands in the document.
func (d *decoder) ignored(key abi.Node, pos int) bool {
	return d.pushEntry(pos, key, abi.Node{Tag: abi.TagU64, Val: uint64(pos)})
}

// closeIgnored checks the ignored keys above mark and forgets them.
func (d *decoder) closeIgnored(mark, side int) bool {
	if dup := d.duplicate(d.nodes[mark:], d.side[d.other:]); dup >= 0 {
		at := abi.GetNode(d.nodes, uint32(mark+dup*abi.SizeEntry+abi.OffEntryVal))
		d.fail(int(at.Val), msgDuplicate)
		return false
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
