package hint

import (
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// found tells whether a node of the tree, keys included, satisfies pred.
func found(base abi.Base, n abi.Node, pred func(abi.Node) bool) bool {
	switch n.Tag {
	case abi.TagArray:
		for i := range n.Len {
			if found(base, base.Elem(n, i), pred) {
				return true
			}
		}
	case abi.TagMap:
		for i := range n.Len {
			if k, v := base.Entry(n, i); found(base, k, pred) || found(base, v, pred) {
				return true
			}
		}
	}
	return pred(n)
}

// pathTo spells the way from the payload to the first node that satisfies pred. It is
// for messages: it walks a level again for every level.
func pathTo(base abi.Base, n abi.Node, pred func(abi.Node) bool) string {
	path := []byte("payload")
down:
	for {
		switch n.Tag {
		case abi.TagArray:
			for i := range n.Len {
				if e := base.Elem(n, i); found(base, e, pred) {
					path, n = appendIndex(path, i), e
					continue down
				}
			}
		case abi.TagMap:
			for i := range n.Len {
				k, v := base.Entry(n, i)
				if found(base, k, pred) {
					return string(append(path, " key "+strconv.Itoa(int(i))...))
				}
				if found(base, v, pred) {
					path, n = appendKey(path, base, k), v
					continue down
				}
			}
		}
		return string(path)
	}
}

func appendIndex(path []byte, i uint32) []byte {
	path = strconv.AppendUint(append(path, '['), uint64(i), 10)
	return append(path, ']')
}

// pathKeyBytes is how much of one key a path shows.
const pathKeyBytes = 64

func appendKey(path []byte, base abi.Base, k abi.Node) []byte {
	switch k.Tag {
	case abi.TagString:
		key := base.Bytes(k)
		if plainKey(key) {
			return append(append(path, '.'), key...)
		}
		return append(strconv.AppendQuoteToASCII(append(path, '['), string(key[:min(len(key), pathKeyBytes)])), ']')
	case abi.TagU64, abi.TagI64, abi.TagF64:
		return append(appendText(append(path, "[key "...), k, nil), ']')
	}
	return append(append(append(path, "[key "...), gotOf(k.Tag).String()...), ']')
}

func plainKey(key []byte) bool {
	for _, c := range key {
		if c != '_' && c != '-' && c-'0' > 9 && c|0x20-'a' > 25 {
			return false
		}
	}
	return len(key) > 0 && len(key) <= pathKeyBytes
}

// duplicateIn looks for a map of the tree that has a key twice.
func (d *decoder) duplicateIn(base abi.Base, n abi.Node) (path string, dup bool) {
	has := func(n abi.Node) bool {
		return n.Tag == abi.TagMap && n.Len > 1 &&
			d.duplicate(base[uint32(n.Val):uint32(n.Val)+n.Len*abi.SizeEntry], base) >= 0
	}
	if !found(base, n, has) {
		return "", false
	}
	return pathTo(base, n, has), true
}

// copyTree appends the tree under n to out, laid out as the decoders do, and returns
// its root. The tree has passed a Check function of package abi.
func (d *decoder) copyTree(base abi.Base, n abi.Node) (abi.Node, bool) {
	switch n.Tag {
	case abi.TagNumber, abi.TagString, abi.TagBytes, abi.TagExt:
		d.notMsgpack = d.notMsgpack || n.Tag == abi.TagNumber
		d.notJSON = d.notJSON || n.Tag == abi.TagBytes || n.Tag == abi.TagExt
		return d.copyRun(base.Bytes(n), n), true
	case abi.TagU64s:
		if !d.room(0, int(n.Len)*8+8) {
			return n, false
		}
		d.out = abi.Align(d.out)
		run := abi.Node{Tag: abi.TagU64s, Len: n.Len, Val: uint64(d.here())}
		off := uint32(n.Val)
		d.out = append(d.out, base[off:off+n.Len*8]...)
		return run, true
	case abi.TagArray:
		mark, ok := d.reserve(n.Len * abi.SizeNode)
		for i := uint32(0); ok && i < n.Len; i++ {
			e := base.Elem(n, i)
			if e.Tag == abi.TagString {
				e = d.copyRun(base.Bytes(e), e)
			} else {
				e, ok = d.copyTree(base, e)
			}
			abi.PutNode(d.nodes[mark:], i*abi.SizeNode, e)
		}
		if !ok {
			return n, false
		}
		return d.closeArray(mark), true
	case abi.TagMap:
		mark, ok := d.reserve(n.Len * abi.SizeEntry)
		for i := uint32(0); ok && i < n.Len; i++ {
			k, v := base.Entry(n, i)
			if k.Tag == abi.TagString {
				k = d.copyRun(base.Bytes(k), k)
			} else {
				d.notJSON = true
				k, ok = d.copyTree(base, k)
			}
			if ok {
				v, ok = d.copyTree(base, v)
			}
			entry := d.nodes[uint32(mark)+i*abi.SizeEntry:]
			abi.PutNode(entry, 0, k)
			abi.PutNode(entry, abi.OffEntryVal, v)
		}
		if !ok {
			return n, false
		}
		m, dup := d.closeMap(mark)
		if dup >= 0 {
			d.fail(0, msgDuplicate)
		}
		return m, dup < 0
	}
	d.nonFinite = d.nonFinite || notFinite(n)
	return abi.Node{Tag: n.Tag, Val: n.Val}, true
}

// reserve makes room on the stack for nodes of that many bytes, and tells where.
func (d *decoder) reserve(size uint32) (mark int, ok bool) {
	if !d.room(0, int(size)) {
		return 0, false
	}
	mark = len(d.nodes)
	d.nodes = extend(d.nodes, int(size))
	return mark, true
}

// copyRun appends bytes and returns the node of like's kind that refers to them.
func (d *decoder) copyRun(b []byte, like abi.Node) abi.Node {
	like.Len, like.Val = uint32(len(b)), uint64(d.here())
	d.out = append(d.out, b...)
	return like
}
