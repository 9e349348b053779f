package hint

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// Runs of integers are nearly always block hashes, which have all of their 64 bits: what
// looks like that is written in one stride, and whatever does not goes the usual way.

// appendMsgpackU64s appends the integers of a run. Room is made at once for the nine
// bytes that each takes at most.
func appendMsgpackU64s(dst, run []byte) []byte {
	at := len(dst)
	dst = extend(dst, len(run)/8*9)
	for {
		left := mpPutHashes(dst[at:], run)
		at += (len(run) - len(left)) / 8 * 9
		if run = left; len(run) < 8 {
			return dst[:at]
		}
		// Those next to a smaller one come one by one, and so do the last.
		for range min(8, len(run)/8) {
			at = len(appendMsgpackUint(dst[:at], binary.LittleEndian.Uint64(run)))
			run = run[8:]
		}
	}
}

// mpPutHashes writes integers above 32 bits, eight at a time, and returns what is left.
func mpPutHashes(dst, run []byte) []byte {
	for len(run) >= 64 && len(dst) >= 72 {
		r, o := (*[64]byte)(run), (*[72]byte)(dst)
		a, b := binary.LittleEndian.Uint64(r[0:]), binary.LittleEndian.Uint64(r[8:])
		c, d := binary.LittleEndian.Uint64(r[16:]), binary.LittleEndian.Uint64(r[24:])
		e, f := binary.LittleEndian.Uint64(r[32:]), binary.LittleEndian.Uint64(r[40:])
		g, h := binary.LittleEndian.Uint64(r[48:]), binary.LittleEndian.Uint64(r[56:])
		if min(a, b, c, d, e, f, g, h) <= math.MaxUint32 {
			break
		}
		o[0], o[9], o[18], o[27] = mpUint64, mpUint64, mpUint64, mpUint64
		o[36], o[45], o[54], o[63] = mpUint64, mpUint64, mpUint64, mpUint64
		binary.BigEndian.PutUint64(o[1:], a)
		binary.BigEndian.PutUint64(o[10:], b)
		binary.BigEndian.PutUint64(o[19:], c)
		binary.BigEndian.PutUint64(o[28:], d)
		binary.BigEndian.PutUint64(o[37:], e)
		binary.BigEndian.PutUint64(o[46:], f)
		binary.BigEndian.PutUint64(o[55:], g)
		binary.BigEndian.PutUint64(o[64:], h)
		run, dst = run[64:], dst[72:]
	}
	return run
}

// jsonRunRoom is how many integers room is made for at once, since small ones take far
// less than the most.
const jsonRunRoom = 64

// appendJSONU64s appends the integers of a run as a list.
func appendJSONU64s(dst, run []byte) []byte {
	dst = append(dst, '[')
	for len(run) >= 8 {
		part := run[:min(len(run), 8*jsonRunRoom)&^7]
		run = run[len(part):]
		dst = slices.Grow(dst, len(part)/8*(maxDigits+1))
		for ; len(part) >= 8; part = part[8:] {
			dst = append(appendUint(dst, binary.LittleEndian.Uint64(part)), ',')
		}
	}
	if last := len(dst) - 1; dst[last] == ',' {
		dst[last] = ']'
		return dst
	}
	return append(dst, ']')
}

// maxDigits is how many digits a uint64 has at most.
const maxDigits = 20

// appendUint is strconv.AppendUint to base 10, for numbers that have 17 to 20 digits as a
// rule: 16 of them are computed eight at a time, in the bytes of a word.
func appendUint(dst []byte, v uint64) []byte {
	const e16, e8 = 10_000_000_000_000_000, 100_000_000
	at := len(dst)
	if v < e16 || cap(dst)-at < maxDigits {
		return strconv.AppendUint(dst, v, 10)
	}
	top, rest := uint32(v/e16), v%e16
	o := dst[at : at+maxDigits]
	digits := fourDigits(top)
	blank := bits.TrailingZeros32(digits) / 8 // top is not 0
	binary.LittleEndian.PutUint32(o, (digits|'0'*0x01010101)>>(8*blank))
	n := 4 - blank
	o = o[n : n+16]
	binary.LittleEndian.PutUint64(o, eightDigits(uint32(rest/e8))|'0'*ones)
	binary.LittleEndian.PutUint64(o[8:], eightDigits(uint32(rest%e8))|'0'*ones)
	return dst[:at+n+16]
}

// fourDigits are the digits of a number below 10^4, the first one in the lowest byte.
func fourDigits(v uint32) uint32 {
	v = v/100 | v%100<<16
	tens := v * 103 >> 10 & 0x000f000f // v/10, of each half
	return tens | (v-10*tens)<<8
}

// eightDigits are the digits of a number below 10^8, the first one in the lowest byte.
func eightDigits(v uint32) uint64 {
	w := uint64(v/10_000) | uint64(v%10_000)<<32
	hundreds := w * 5243 >> 19 & 0x0000007f_0000007f // w/100, of each half
	w = hundreds | (w-100*hundreds)<<16
	tens := w * 103 >> 10 & 0x000f000f_000f000f // w/10, of each quarter
	return tens | (w-10*tens)<<8
}
