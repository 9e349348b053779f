package peer_test

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvrt/kvrt/hosts/fetch/peer"
	"github.com/kvrt/kvrt/hosts/fetch/peer/memstore"
	"github.com/kvrt/kvrt/hosts/fetch/peer/peertest"
	"github.com/kvrt/kvrt/hosts/fetch/peer/tcp"
	"github.com/kvrt/kvrt/hosts/fetch/peer/unixsock"
)

// One operation of these benchmarks moves benchBlocks blocks of 1 MiB, picked anywhere
// in pools that no cache holds.
const (
	benchBlocks = 64
	benchSize   = 1 << 20
	benchPool   = 192 // blocks
)

// pool is a sink whose slots are handed out in a random order, without a word.
type pool struct {
	memory []byte
	order  []int
	next   int
}

func newPool(blockBytes int) *pool {
	p := &pool{memory: make([]byte, benchPool*benchSize), order: rand.Perm(benchPool * benchSize / blockBytes)}
	for i := 0; i < len(p.memory); i += 4096 {
		p.memory[i] = 1 // pages are there
	}
	return p
}

func (p *pool) Reserve(_ []byte, _ uint64, size int) (peer.Slot, error) {
	at := p.order[p.next%len(p.order)] * size
	p.next++
	return peer.Slot{Data: p.memory[at : at+size]}, nil
}

func (p *pool) Commit(peer.Slot, uint32) bool { return true }
func (p *pool) Abort(peer.Slot)               {}

// bench is a source with blocks, and a way to it.
type bench struct {
	store  *memstore.Store
	blocks [][]byte // of the pool
	size   int
}

func newBench(b *testing.B, size int, shared bool) *bench {
	b.Helper()
	n := benchPool * benchSize / size
	st, err := memstore.New(n, size, shared)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(st.Close)
	fresh := make([]byte, size)
	r := rand.NewChaCha8([32]byte{1})
	for h := range n {
		r.Read(fresh)
		if err := st.Put(space, uint64(h), fresh); err != nil {
			b.Fatal(err)
		}
	}
	var l peer.Lease
	all := make([]uint64, n)
	for i := range all {
		all[i] = uint64(i)
	}
	st.Lease([]byte(space), all, 1<<40, &l)
	e := &bench{store: st, size: size}
	for i := range l.Blocks {
		e.blocks = append(e.blocks, l.Blocks[i].Data)
	}
	b.Cleanup(func() { st.Release(&l) })
	return e
}

// requests are lists of blocks, each anywhere.
func (e *bench) requests() [][]uint64 {
	var out [][]uint64
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(e.blocks))
	for len(order) >= benchBlocks {
		var r []uint64
		for _, i := range order[:benchBlocks] {
			r = append(r, uint64(i))
		}
		out, order = append(out, r), order[benchBlocks:]
	}
	return out
}

// pull is one pull of 64 blocks over a transport, checksums and all.
func (e *bench) pull(b *testing.B, source, target peer.Transport, addr string) func(i int) {
	b.Helper()
	l, err := source.Listen(addr)
	if err != nil {
		b.Fatal(err)
	}
	s := peer.NewServer(peer.ServerConfig{Source: e.store, Auth: anyone{}})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	c := peer.NewClient(peer.ClientConfig{}, func(ctx context.Context) (*peer.Link, error) { return target.Dial(ctx, l.Address()) }, newPool(e.size))
	b.Cleanup(func() { c.Close(); s.Close(); <-done })
	reqs := e.requests()
	status := make([]peer.Status, benchBlocks)
	req := &peer.Request{Namespace: []byte(space), BlockBytes: e.size, MaxBytes: 1 << 40}
	ctx, cancel := context.WithTimeout(context.Background(), 10*patient)
	b.Cleanup(cancel)
	return func(i int) {
		req.Hashes = reqs[i%len(reqs)]
		if res, err := c.Pull(ctx, req, status); err != nil || res.Blocks != benchBlocks {
			b.Fatal(res, err)
		}
	}
}

// copies is the floor of a slab: the same bytes, copied.
func (e *bench) copies() func(i int) {
	p, reqs := newPool(e.size), e.requests()
	return func(i int) {
		for _, h := range reqs[i%len(reqs)] {
			s, _ := p.Reserve(nil, h, e.size)
			copy(s.Data, e.blocks[h])
		}
	}
}

// loop is the floor of a socket: it asks with one byte, gets 64 blocks of one writev,
// and reads each whole.
func (e *bench) loop(b *testing.B, l net.Listener, dial func() (net.Conn, error)) func(i int) {
	b.Helper()
	reqs := e.requests()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		var ask [1]byte
		for i := 0; ; i++ {
			if _, err := io.ReadFull(c, ask[:]); err != nil {
				return
			}
			var bufs net.Buffers
			for _, h := range reqs[i%len(reqs)] {
				bufs = append(bufs, e.blocks[h])
			}
			if _, err := bufs.WriteTo(c); err != nil {
				return
			}
		}
	}()
	c, err := dial()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close(); l.Close(); <-done })
	p := newPool(e.size)
	return func(int) {
		if _, err := c.Write([]byte{1}); err != nil {
			b.Fatal(err)
		}
		for h := range uint64(benchBlocks) {
			s, _ := p.Reserve(nil, h, e.size)
			if _, err := io.ReadFull(c, s.Data); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func socket(b *testing.B) string {
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func listen(b *testing.B, network, addr string) net.Listener {
	l, err := net.Listen(network, addr)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkPull moves the same bytes by a pull and by its floor in turn, so that both
// see the same machine, and reports the medians of both.
func BenchmarkPull(b *testing.B) {
	for _, c := range []struct {
		name string
		make func(b *testing.B, e *bench) (pull, floor func(i int))
	}{
		{"slab", func(b *testing.B, e *bench) (pull, floor func(i int)) {
			return e.pull(b, &unixsock.Transport{}, &unixsock.Transport{}, socket(b)), e.copies()
		}},
		{"unix", func(b *testing.B, e *bench) (pull, floor func(i int)) {
			l := listen(b, "unix", socket(b))
			floor = e.loop(b, l, func() (net.Conn, error) { return net.Dial("unix", l.Addr().String()) })
			return e.pull(b, &unixsock.Transport{}, &unixsock.Transport{}, socket(b)), floor
		}},
		{"tcp", func(b *testing.B, e *bench) (pull, floor func(i int)) {
			l := listen(b, "tcp", "127.0.0.1:0")
			floor = e.loop(b, l, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
			source, target := tlsPair(b, true)
			return e.pull(b, source, target, "127.0.0.1:0"), floor
		}},
		{"tls", func(b *testing.B, e *bench) (pull, floor func(i int)) {
			source, target := tlsPair(b, false)
			l := tls.NewListener(listen(b, "tcp", "127.0.0.1:0"), &tls.Config{Certificates: []tls.Certificate{source.Certificate}})
			floor = e.loop(b, l, func() (net.Conn, error) {
				return tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: target.Roots, ServerName: "source"})
			})
			return e.pull(b, source, target, "127.0.0.1:0"), floor
		}},
	} {
		for _, size := range []int{benchSize, 64 << 10} {
			b.Run(c.name+"/"+map[int]string{benchSize: "1MiB", 64 << 10: "64KiB"}[size], func(b *testing.B) {
				pull, floor := c.make(b, newBench(b, size, c.name == "slab"))
				pull(0) // the link is made
				floor(0)
				inTurn(b, pull, floor)
			})
		}
	}
}

// inTurn runs both until each has run at least 15 times, a pair being one operation. On
// a busy machine the processor time of both ends together says more than the clock.
func inTurn(b *testing.B, pull, floor func(i int)) {
	var wall, cpu [2][]time.Duration
	b.ResetTimer()
	for i := range max(b.N, 15) {
		for k, do := range []func(int){pull, floor} {
			used, start := processor(b), time.Now()
			do(i)
			wall[k], cpu[k] = append(wall[k], time.Since(start)), append(cpu[k], processor(b)-used)
		}
	}
	b.StopTimer()
	for k, name := range []string{"pull", "floor"} {
		slices.Sort(wall[k])
		slices.Sort(cpu[k])
		b.ReportMetric(float64(wall[k][len(wall[k])/2]), name+"-ns")
		b.ReportMetric(float64(cpu[k][len(cpu[k])/2]), name+"-cpu-ns")
	}
	b.ReportMetric(0, "ns/op")
}

// processor is the time that this process has used.
func processor(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func tlsPair(b *testing.B, clear bool) (source, target *tcp.Transport) {
	a := peertest.NewAuthority(b)
	return &tcp.Transport{Certificate: a.Issue(b, "source"), Roots: a.Roots(), ClearData: clear},
		&tcp.Transport{Certificate: a.Issue(b, "target"), Roots: a.Roots(), ClearData: clear}
}
