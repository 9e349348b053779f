package peer

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// vault is a sink and source of a few blocks that remembers what it was told.
type vault struct {
	mu      sync.Mutex
	blocks  map[uint64][]byte
	filling map[uint64][]byte
	leased  int
}

func newVault(hashes ...uint64) *vault {
	v := &vault{blocks: make(map[uint64][]byte), filling: make(map[uint64][]byte)}
	for _, h := range hashes {
		v.blocks[h] = payload(h)
	}
	return v
}

// payload is the bytes of a block.
func payload(h uint64) []byte { return bytes.Repeat([]byte{byte(h), byte(h >> 8), 0x5a}, 100) }

func (v *vault) Reserve(_ []byte, h uint64, size int) (Slot, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.blocks[h] != nil || v.filling[h] != nil {
		return Slot{}, ErrPresent
	}
	v.filling[h] = make([]byte, size)
	return Slot{v.filling[h], h}, nil
}

func (v *vault) Commit(s Slot, crc uint32) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if Checksum(s.Data) != crc {
		panic("a block was committed with another checksum than it has")
	}
	v.blocks[s.Ref] = s.Data
	delete(v.filling, s.Ref)
	return true
}

func (v *vault) Abort(s Slot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.filling[s.Ref] == nil {
		panic("a slot was given back twice")
	}
	delete(v.filling, s.Ref)
}

func (v *vault) Lease(_ []byte, hashes []uint64, _ int64, l *Lease) {
	v.mu.Lock()
	defer v.mu.Unlock()
	l.Blocks = l.Blocks[:0]
	for _, h := range hashes {
		b := v.blocks[h]
		if b == nil {
			break
		}
		l.Blocks = append(l.Blocks, Block{Hash: h, Generation: 1, CRC: Checksum(b), Data: b})
	}
	v.leased += len(l.Blocks)
}

func (v *vault) Release(l *Lease) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.leased -= len(l.Blocks)
}

func (v *vault) Current(*Lease, int) uint64 { return 1 }
func (v *vault) Slab() (Slab, bool)         { return Slab{}, false }

// check holds what is in the vault against what should be.
func (v *vault) check(t *testing.T, what string) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for h, b := range v.blocks {
		if !bytes.Equal(b, payload(h)) {
			t.Errorf("%s: block %d is wrong", what, h)
		}
	}
	if len(v.filling) != 0 || v.leased != 0 {
		t.Errorf("%s: %d slots and %d leases are left", what, len(v.filling), v.leased)
	}
}

// answer is what an honest source sends for blocks 1 and 2, before a lie.
type answer struct {
	welcome  welcome
	begin    begin
	bodies   [][]byte
	trailers []trailer
	end      end
	file     func() (*os.File, error) // the slab; nil without

	from    uint64          // the incarnation that is shown
	op      uint64          // what is added to the operation
	frame   func(f *frames) // just before Begin is sent
	late    func(f *frames) // just before End is sent
	extra   []byte          // behind the last trailer
	onlyEnd bool            // no payload: a slab
}

const sourceIncarnation = 77

func honest() *answer {
	a := &answer{welcome: welcome{maxBlocks: 100, credit: 1 << 20}, from: sourceIncarnation, end: end{served: 2, credit: 1 << 20}}
	for h := uint64(1); h <= 2; h++ {
		b := payload(h)
		a.begin.records = append(a.begin.records, record{hash: h, generation: 10 + h, length: uint32(len(b)), crc: Checksum(b)})
		a.bodies = append(a.bodies, b)
		a.trailers = append(a.trailers, trailer{hash: h, generation: 10 + h})
	}
	return a
}

// run plays a source on one end of a pipe.
func (a *answer) run(c net.Conn) {
	defer c.Close()
	f := &frames{link: &Link{Control: c, Data: c}, self: a.from}
	h, _, err := f.receive(0, frameHello, frameHello)
	if err != nil {
		return
	}
	f.peer = h.from
	if f.send(frameWelcome, 0, a.welcome.append(f.body())) != nil {
		return
	}
	h, _, err = f.receive(0, frameFetch, frameFetch)
	if err != nil {
		return
	}
	op := h.op + a.op
	if a.frame != nil {
		a.frame(f)
	}
	if f.send(frameBegin, op, a.begin.append(f.body())) != nil {
		return
	}
	if !a.onlyEnd {
		var b []byte
		for _, body := range a.bodies {
			b = append(b, body...)
		}
		for _, t := range a.trailers {
			t.op += h.op
			b = t.append(b)
		}
		if _, err := c.Write(append(b, a.extra...)); err != nil {
			return
		}
	} else if _, _, err := f.receive(op, frameDone, frameDone); err != nil {
		return
	}
	if a.late != nil {
		a.late(f)
	}
	f.send(frameEnd, op, a.end.append(f.body()))
}

// dialPipe connects to an answer.
func dialPipe(a *answer, wait *sync.WaitGroup) DialFunc {
	return func(context.Context) (*Link, error) {
		near, far := net.Pipe()
		wait.Go(func() { a.run(far) })
		return &Link{Control: near, Data: near, ReceiveFile: a.file}, nil
	}
}

// memfd is a slab with blocks 1 and 2, a page each.
func memfd(t *testing.T, seals int) func() (*os.File, error) {
	return func() (*os.File, error) {
		fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			t.Error(err)
			return nil, err
		}
		f := os.NewFile(uintptr(fd), "slab")
		f.Truncate(8192)
		f.WriteAt(payload(1), 0)
		f.WriteAt(payload(2), 4096)
		unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
		return f, nil
	}
}

func slabbed(t *testing.T, seals int) *answer {
	a := honest()
	a.onlyEnd, a.file = true, memfd(t, seals)
	a.welcome.features, a.welcome.slabSize = featureSlab, 8192
	a.begin.records[1].offset = 4096
	return a
}

const sealed = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// TestLies: whatever a source says, no wrong block is committed, no slot is left, and
// blocks before the lie stay where the lie is about one block.
func TestLies(t *testing.T) {
	for _, c := range []struct {
		name   string
		lie    func(a *answer)
		blocks int // that are committed all the same
		slab   bool
	}{
		{"none", func(*answer) {}, 2, false},
		{"none, slab", func(*answer) {}, 2, true},
		{"another key", func(a *answer) { a.begin.records[1].hash = 9 }, 0, false},
		{"keys swapped", func(a *answer) { r := a.begin.records; r[0], r[1] = r[1], r[0] }, 0, false},
		{"a key twice", func(a *answer) { a.begin.records[1] = a.begin.records[0] }, 0, false},
		{"more blocks than asked for", func(a *answer) { a.begin.records = append(a.begin.records, a.begin.records[1]) }, 0, false},
		{"fewer without a reason", func(a *answer) { a.begin.records = a.begin.records[:1] }, 0, false},
		{"a longer block", func(a *answer) { a.begin.records[0].length++ }, 0, false},
		{"a shorter block", func(a *answer) { a.begin.records[0].length-- }, 0, false},
		{"a shorter block, which is sound", func(a *answer) {
			a.bodies[1] = a.bodies[1][:299]
			a.begin.records[1].length, a.begin.records[1].crc = 299, Checksum(a.bodies[1])
		}, 0, false},
		{"a block without bytes", func(a *answer) { a.begin.records[1].length = 0 }, 0, false},
		{"a huge block", func(a *answer) { a.begin.records[1].length = MaxBlock }, 0, false},
		{"another checksum", func(a *answer) { a.begin.records[1].crc++ }, 1, false},
		{"other bytes", func(a *answer) { a.bodies[1] = payload(3) }, 1, false},
		{"bytes swapped", func(a *answer) { a.bodies[0], a.bodies[1] = a.bodies[1], a.bodies[0] }, 0, false},
		{"another generation at the end", func(a *answer) { a.trailers[1].generation++ }, 1, false},
		{"another generation at the start", func(a *answer) { a.begin.records[0].generation++ }, 0, false},
		{"another block in the trailer", func(a *answer) { a.trailers[0].hash = 9 }, 0, false},
		{"another operation in the trailer", func(a *answer) { a.trailers[0].op = 1 }, 0, false},
		{"another operation", func(a *answer) { a.op = 1 }, 0, false},
		{"another incarnation", func(a *answer) { a.frame = func(f *frames) { f.self++ } }, 0, false},
		{"another incarnation at the end", func(a *answer) { a.late = func(f *frames) { f.self++ } }, 2, false},
		{"an answer to another incarnation", func(a *answer) { a.frame = func(f *frames) { f.peer++ } }, 0, false},
		{"bytes too many", func(a *answer) { a.extra = []byte("x") }, 2, false},
		{"not all held", func(a *answer) { a.end.served = 1 }, 2, false},
		{"not all held, slab", func(a *answer) { a.end.served = 1 }, 0, true},
		{"another incarnation at the end, slab", func(a *answer) { a.late = func(f *frames) { f.self++ } }, 0, true},
		{"another checksum, slab", func(a *answer) { a.begin.records[1].crc++ }, 1, true},
		{"another place in the slab", func(a *answer) { a.begin.records[1].offset = 0 }, 1, true},
		{"a place outside the slab", func(a *answer) { a.begin.records[1].offset = 8192 - 299 }, 0, true},
		{"a place far outside the slab", func(a *answer) { a.begin.records[1].offset = 1<<64 - 1 }, 0, true},
		{"a slab of another size", func(a *answer) { a.welcome.slabSize = 8193 }, 0, true},
		{"a slab that nobody asked for", func(a *answer) { a.welcome.features, a.welcome.slabSize = featureSlab, 8192 }, 0, false},
		{"no blocks at all", func(a *answer) { a.welcome.maxBlocks = 0 }, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := honest()
			if c.slab {
				a = slabbed(t, sealed)
			}
			c.lie(a)
			v := newVault()
			var sources sync.WaitGroup
			client := NewClient(ClientConfig{}, dialPipe(a, &sources), v)
			status := make([]Status, 2)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			res, err := client.Pull(ctx, &Request{Namespace: []byte("n"), Hashes: []uint64{1, 2}, BlockBytes: 300, MaxBytes: 600}, status)
			cancel()
			client.Close()
			sources.Wait()
			v.check(t, c.name)
			lied := c.name != "none" && c.name != "none, slab"
			if (err != nil) != lied || lied && !errors.Is(err, ErrProtocol) {
				t.Errorf("the pull: %+v, %v", res, err)
			}
			if len(v.blocks) != c.blocks {
				t.Errorf("%d blocks were committed, want %d", len(v.blocks), c.blocks)
			}
			for i, st := range status {
				if (st == Success) != (v.blocks[uint64(i+1)] != nil) {
					t.Errorf("block %d: %v", i+1, st)
				}
			}
			if lied && client.Stats().Violations != 1 {
				t.Errorf("%+v", client.Stats())
			}
		})
	}
}

// TestUnsealedSlab: a file that could shrink under the mapping is not mapped.
func TestUnsealedSlab(t *testing.T) {
	for _, seals := range []int{0, unix.F_SEAL_GROW, unix.F_SEAL_SHRINK} {
		a := slabbed(t, seals)
		v := newVault()
		var sources sync.WaitGroup
		client := NewClient(ClientConfig{}, dialPipe(a, &sources), v)
		if _, err := client.Pull(t.Context(), &Request{Hashes: []uint64{1, 2}, MaxBytes: 600}, make([]Status, 2)); !errors.Is(err, ErrProtocol) {
			t.Errorf("with seals %#x: %v", seals, err)
		}
		client.Close()
		sources.Wait()
		v.check(t, "unsealed")
	}
}

// FuzzSource feeds a client whatever a source might say.
func FuzzSource(f *testing.F) {
	var seed []byte
	for _, a := range []*answer{honest()} {
		near, far := net.Pipe()
		go a.run(far)
		fr := &frames{link: &Link{Control: near}, self: 5}
		fr.send(frameHello, 0, new(hello).append(fr.body()))
		buf := make([]byte, 4096)
		n, _ := near.Read(buf)
		seed = append(seed, buf[:n]...)
		near.Close()
	}
	f.Add(seed, true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, b []byte, greet bool) {
		a := honest()
		v := newVault()
		var sources sync.WaitGroup
		client := NewClient(ClientConfig{Incarnation: 5}, func(context.Context) (*Link, error) {
			near, far := net.Pipe()
			sources.Go(func() {
				defer far.Close()
				fr := &frames{link: &Link{Control: far, Data: far}, self: sourceIncarnation}
				if greet {
					h, _, err := fr.receive(0, frameHello, frameHello)
					if err != nil {
						return
					}
					fr.peer = h.from
					fr.send(frameWelcome, 0, a.welcome.append(fr.body()))
				}
				go far.Write(b)
				for buf := make([]byte, 512); ; {
					if _, err := far.Read(buf); err != nil {
						return
					}
				}
			})
			return &Link{Control: near, Data: near}, nil
		}, v)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		client.Pull(ctx, &Request{Namespace: []byte("n"), Hashes: []uint64{1, 2}, MaxBytes: 1 << 20}, make([]Status, 2))
		client.Close()
		sources.Wait()
		v.check(t, "whatever")
	})
}
