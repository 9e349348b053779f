package session

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/hosttest"
)

// FuzzEvents reads events out of bytes and holds the index against the model after each.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x03abc\x01\x10\x05\x02de\x02\x00\x00\x01c"), true)
	f.Add([]byte("\x00\x20\x05\x01c\x01\x21\x03\x02bc\x03\x01\x00\x00"), false)
	f.Add([]byte("\x01\x00\x00\x04aabb\x01\x13\x61\x03abc\x02\x03\x00\x02ba\x04\x00\x00\x00"), true)
	f.Fuzz(func(t *testing.T, in []byte, prune bool) {
		grace := time.Duration(math.MaxInt64)
		if prune {
			grace = -1
		}
		x, m := New(Config{MaxSessions: 3, Grace: grace}), newModel(prune, 3)
		for n := 0; len(in) >= 4 && n < 40; n++ {
			op, who, parent, size := in[0]%5, in[1], uint64(in[2]%32), int(in[3]%8)
			in = in[4:]
			var hashes []uint64
			for _, c := range in[:min(size, len(in))] {
				hashes = append(hashes, uint64(c%32))
			}
			in = in[len(hashes):]
			sid, w, has := modelSessions[who%4], modelWorkers[int(who/4)%len(modelWorkers)], who&64 != 0
			var moved, want bool
			var err, wantErr error
			switch {
			case op == 3:
				moved, err = x.Apply(&Event{Op: OpCleared, Worker: w})
				want = m.clear(func(o hint.Worker) bool { return o == w })
			case op == 4:
				moved = x.RemoveWorker(w.ID)
				want = m.clear(func(o hint.Worker) bool { return o.ID == w.ID })
			case len(hashes) == 0:
				continue
			case op == 0:
				moved, err = x.Apply(&Event{Op: OpMatched, Worker: w, Session: sid, Hashes: hashes})
				h := hashes[len(hashes)-1]
				m.known[h] = true
				want = m.advance(sid, w, h)
				m.touch(sid)
				m.clean()
			case op == 1:
				moved, err = x.Apply(&Event{Op: OpStored, Worker: w, Session: sid, Hashes: hashes, Parent: parent, HasParent: has})
				want, wantErr = m.stored(sid, w, parent, has, hashes)
			default:
				moved, err = x.Apply(&Event{Op: OpRemoved, Worker: w, Hashes: hashes})
				want = m.removed(w, hashes)
			}
			if moved != want || (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Fatalf("%v, %v; the model says %v, %v", moved, err, want, wantErr)
			}
		}
		compare(t, x, m)
	})
}

// FuzzHost: whatever a guest passes, nothing but an answer that fits is written.
func FuzzHost(f *testing.F) {
	set := new(Set)
	x := set.Add("", Config{})
	w := hint.Worker{ID: hint.NamedWorker("w")}
	if _, err := x.Apply(stored(w, "s", 1, 2, 3)); err != nil {
		f.Fatal(err)
	}
	host := NewHost(set, nil)
	f.Add(uint64(32), uint64(1), uint64(0), uint64(math.MaxUint32), uint64(2), uint64(1), uint64(128), uint64(512), uint8(7), uint32(1), uint64(33))
	f.Add(uint64(32), uint64(1), uint64(1023), uint64(0), uint64(2), uint64(3), uint64(1<<32-1), uint64(1<<32-1), uint8(7), uint32(1<<32-1), uint64(1<<63))
	f.Add(uint64(1<<40|32), uint64(1), uint64(0), uint64(0), uint64(9), uint64(0), uint64(1000), uint64(24), uint8(3), uint32(0), uint64(1))
	f.Fuzz(func(t *testing.T, session, n, at, rank, anchor, flags, buf, size uint64, tag uint8, length uint32, val uint64) {
		mem := make([]byte, 1024)
		mem[32], mem[33] = 's', 'w'
		abi.PutNode(mem, 0, abi.Node{Tag: abi.Tag(tag), Len: length, Val: val})
		for name, stack := range map[string][]uint64{
			"lineage": {session, n, at, rank, anchor, flags, buf, size}, "exclusive": {session, n, at, rank, buf, size},
			"frontiers": {session, n, buf, size}, "node": {anchor, buf, size},
		} {
			before := bytes.Clone(mem)
			hosttest.Function(t, host, name).Call(runtime.NewCall(runtime.CallConfig{}), mem, stack)
			from, got := int(uint32(buf)), int64(stack[0])
			if got < 0 && abi.Reason(-got).String() == "" {
				t.Fatalf("%s returns %d", name, got)
			}
			if got > 0 && got <= int64(uint32(size)) {
				copy(before[from:], mem[from:from+int(got)])
			}
			if !bytes.Equal(mem, before) {
				t.Fatalf("%s wrote beside its answer", name)
			}
		}
	})
}
