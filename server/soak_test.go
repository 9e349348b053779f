package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soakEnv lengthens the soak: a duration. It is short by default.
const soakEnv = "KVRT_SOAK"

// TestSoak lets clients of all manners loose on one daemon, while its guest is swapped
// again and again. Well-behaved ones get every answer, and afterwards the daemon holds
// no more than before.
func TestSoak(t *testing.T) {
	length := time.Second
	if s := os.Getenv(soakEnv); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	g := newRig(t, withAdmin, func(c *rigConfig) {
		c.FrameTimeout, c.WriteTimeout, c.MaxConnections = 50*time.Millisecond, 100*time.Millisecond, 64
	})
	first := g.usage()
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var wg sync.WaitGroup
	var good, bad atomic.Uint64
	for i := range 3 {
		c := g.dial()
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("a%d-%d", i, n)
				reply, err := c.Submit(context.Background(), Submit{Body: envelope(id + " r")})
				if err != nil || verdicts(reply.Results) != id+"=ACCEPTED r=REJECTED/invalid_payload" {
					t.Errorf("%d/%d: %v %+v", i, n, err, reply)
					return
				}
				good.Add(1)
			}
		})
	}
	for i := range 3 {
		rnd := rand.New(rand.NewPCG(uint64(i), 7))
		wg.Go(func() {
			for ctx.Err() == nil {
				g.misbehave(rnd)
				bad.Add(1)
			}
		})
	}
	wg.Go(func() {
		versions := [][]byte{demoGuest(t, '1').Module, demoGuest(t, '2').Module}
		for n := 0; ctx.Err() == nil; n++ {
			if _, err := g.admin().Swap(context.Background(), "demo", GuestRequest{Module: versions[n%2]}); err != nil {
				t.Error(err)
			}
			if _, err := g.admin().Status(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	within(t, "the ill-mannered are gone", g.connections(3))
	last := g.usage()
	t.Logf("%d answers, %d misdeeds; before %+v, after %+v", good.Load(), bad.Load(), first, last)
	if good.Load() == 0 || bad.Load() == 0 {
		t.Error("nothing happened")
	}
	if last.descriptors > first.descriptors+20 || last.goroutines > first.goroutines+30 || last.heap > first.heap+(32<<20) {
		t.Errorf("before %+v, after %+v", first, last)
	}
}

type usage struct {
	goroutines, descriptors int
	heap                    uint64
}

func (g *rig) usage() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd") // none, and nothing to compare, elsewhere
	return usage{runtime.NumGoroutine(), len(files), m.HeapAlloc}
}

// misbehave does one thing that a client should not. What comes back, or whether it
// comes, does not matter.
func (g *rig) misbehave(rnd *rand.Rand) {
	conn, err := net.Dial("unix", g.path)
	if err != nil {
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(500 * time.Millisecond))
	hello := appendRequest(nil, &request{op: opHello, seq: 1, version: ProtocolVersion})
	frame := submitFrame(1, envelope("a t a"))
	switch rnd.IntN(7) {
	case 0: // not even a hello
		time.Sleep(time.Duration(rnd.IntN(80)) * time.Millisecond)
	case 1: // a frame cut short
		conn.Write(append(hello, frame[:rnd.IntN(len(frame))]...))
		time.Sleep(time.Duration(rnd.IntN(80)) * time.Millisecond)
	case 2: // answers unread
		conn.Write(hello)
		for range 50 {
			if _, err := conn.Write(frame); err != nil {
				return
			}
		}
	case 3: // noise
		noise := make([]byte, 1+rnd.IntN(40_000))
		for i := range noise {
			noise[i] = byte(rnd.Uint32())
		}
		conn.Write(append(hello, noise...))
	case 4: // noise in frames
		b, at := beginFrame(hello)
		for range 1 + rnd.IntN(300) {
			b = append(b, byte(rnd.Uint32()))
		}
		conn.Write(endFrame(b, at))
		conn.Read(make([]byte, 1000))
	case 5: // a large frame, half of it
		conn.Write(append(append(hello, 0, 0x10, 0, 0), make([]byte, rnd.IntN(500_000))...))
	case 6: // a guest that traps, then gone
		conn.Write(append(hello, frame...))
	}
}
