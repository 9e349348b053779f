package enginetest

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/kvrt/kvrt/runtime"
)

// operands are three values of 16 bytes, which an instruction takes as numbers or lanes
// of its own width.
type operands [3][16]byte

// grid is every pair of values of the same width that are special to some instruction:
// ends of ranges, signs, infinities, NaNs of several kinds, shift counts.
func grid() []operands {
	var list []operands
	pairs := func(values [][16]byte) {
		for i, a := range values {
			for j, b := range values {
				list = append(list, operands{a, b, values[(i+2*j)%len(values)]})
			}
		}
	}
	var w32, w64 [][16]byte
	for _, v := range []uint32{0, 0x80000000, 1, 0xffffffff, 33, 0x7fffffff, 0x3f800000, 0xbfc00000, 0x7f800000, 0xff800000, 0x7fa00001, 0x4f000000, 0x7f7fffff} {
		var b [16]byte
		for lane := range 4 { // the upper two have other values than the lower two
			binary.LittleEndian.PutUint32(b[4*lane:], v^uint32(lane&2)<<22)
		}
		w32 = append(w32, b)
	}
	for _, v := range []uint64{0, 1 << 63, 1, 1<<64 - 1, 65, 1<<63 - 1, 0x3ff0000000000000, 0xbfe0000000000001, 0x7ff0000000000000, 0xfff0000000000000,
		0xfff0000000000001, 0x41e0000000000000, 0x43e0000000000000, 0x47efffffffffffff, 0x380fffffffffffff} {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], v)
		binary.LittleEndian.PutUint64(b[8:], v^1<<52)
		w64 = append(w64, b)
	}
	pairs(w32)
	pairs(w64)
	pairs([][16]byte{
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		{0xff, 0x7f, 0x80, 0x00, 0x01, 0xfe, 0xff, 0x7f, 0x00, 0x80, 0xff, 0xff, 0xff, 0xff, 0x00, 0x80},
		{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f},
		{0x2a, 0xd4, 0x17, 0x91, 0x6b, 0x00, 0x5e, 0xc3, 0x10, 0xf8, 0x3d, 0x82, 0x0f, 0xa7, 0x64, 0xb9},
	})
	return list
}

// sweep runs one instruction, whose number is the step's argument, on a list of operands.
// The outcome is a hash over the results.
func (s *script) sweep(st *step, list []operands) string {
	s.Helper()
	op, err := strconv.ParseUint(st.args[0], 0, 32)
	if err != nil {
		s.Fatalf("%s: %v", st.call(), err)
	}
	hash := fnv.New64a()
	traps, fuel := 0, int64(0)
	if s.g == nil || s.swept != st.module {
		s.fresh(st.module, nil)
		s.swept = st.module
	}
	for i := range list {
		bits, out := s.apply(op, &list[i])
		if out.trap != nil {
			traps++
			hash.Write([]byte(out.trap.Msg))
			s.fresh(st.module, nil)
		} else {
			hash.Write(bits[:])
		}
		fuel += out.fuel
	}
	return fmt.Sprintf("= %016x traps %d fuel %d", hash.Sum64(), traps, fuel)
}

// apply runs an instruction and gives the 16 bytes that it can write.
func (s *script) apply(op uint64, in *operands) (bits [16]byte, out outcome) {
	s.Helper()
	mem := s.g.Memory()
	clear(mem[:32])
	for i := range in {
		copy(mem[32+16*i:], in[i][:])
	}
	if out = s.g.run(runtime.ExportHandle, plenty, op, 0, 0); out.trap == nil {
		copy(bits[:], s.g.Memory())
	}
	return bits, out
}
