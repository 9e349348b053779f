package kvevents

import "encoding/binary"

// maxHash is the longest hash that is read from bytes: a SHA-512.
const maxHash = 64

// hash turns one value into 64 bits.
func hash(v value) (h uint64, ok bool) {
	switch v.kind {
	case kindInt:
		return v.n, true
	case kindStr, kindBin: // strings are how older encoders wrote bytes
		b := v.b
		if len(b) == 0 || len(b) > maxHash {
			return 0, false
		}
		if len(b) >= 8 {
			return binary.BigEndian.Uint64(b[len(b)-8:]), true
		}
		for _, c := range b {
			h = h<<8 | uint64(c)
		}
		return h, true
	}
	return 0, false
}

func (d *Decoder) parent(e *fields) {
	v := d.s.next()
	d.s.drop(v)
	e.Parent, e.HasParent = hash(v)
	if !e.HasParent && v.kind != kindNil {
		e.bad = true
	}
}

func (d *Decoder) hashList(e *fields) {
	v := d.s.next()
	if v.kind != kindArray {
		d.s.drop(v)
		e.bad = true
		return
	}
	if v.n > uint64(d.lim.Hashes-len(d.hashes)) {
		d.s.fail(msgHashes)
		return
	}
	mark := len(d.hashes)
	d.hashes = grow(d.hashes, int(v.n))
	out := d.hashes[mark:]
	for len(out) > 0 {
		// Integers of eight bytes, of either sign, are most of what there is.
		src := d.s.src[d.s.pos:]
		for len(src) >= 9 && len(out) > 0 && (src[0] == 0xcf || src[0] == 0xd3) {
			out[0] = binary.BigEndian.Uint64(src[1:])
			src, out = src[9:], out[1:]
		}
		d.s.pos = len(d.s.src) - len(src)
		if len(out) == 0 {
			break
		}
		v := d.s.next()
		if v.kind == kindNone {
			return
		}
		d.s.drop(v)
		h, ok := hash(v)
		if !ok {
			e.bad = true
		}
		out[0], out = h, out[1:]
	}
	e.haveHashes = true
	e.Hashes = d.hashes[mark:len(d.hashes):len(d.hashes)]
}

// grow lengthens s by n elements whose contents are whatever was there.
func grow(s []uint64, n int) []uint64 {
	if cap(s)-len(s) < n {
		s = append(make([]uint64, 0, max(2*cap(s), len(s)+n)), s...)
	}
	return s[:len(s)+n]
}
