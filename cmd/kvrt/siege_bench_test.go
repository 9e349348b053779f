package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvrt/kvrt/server"
)

const (
	siegeManifest = `{"name":"%s","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"demo.%s"}],"limits":{"fuel":2000000}}`
	siegeEnvelope = `{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"f","action_type":"demo.%s","action_version":"1.0","payload":{}}]}`
	// siegeRound is how long the daemon is under siege, or beside processes that spin, at a
	// stretch: the two take turns, so that what else the machine does falls on both.
	siegeRound = 250 * time.Millisecond
)

// BenchmarkSiege is the latency of a good guest's callers through the socket of a real
// kvrt serve, while four others call a guest that computes for 0.9 ms, and guests whose
// start takes all of its fuel are loaded and unloaded. The floor is the same daemon
// beside two processes that spin.
func BenchmarkSiege(b *testing.B) {
	program := siegeProgram(b)
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	daemon := exec.Command(program, "serve", "--socket", socket, "--admin", "127.0.0.1:0", "--log-level", "error")
	daemon.Stderr, daemon.Env = log, append(os.Environ(), "KVRT_COMPILE_CACHE="+filepath.Join(dir, "cache"))
	if err := daemon.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		daemon.Process.Kill()
		daemon.Wait()
	}()
	var admin *server.Admin
	for deadline := time.Now().Add(30 * time.Second); admin == nil; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(log.Name())
		if m := regexp.MustCompile(`(?m)^admin +http://(\S+)`).FindSubmatch(text); err == nil && m != nil {
			admin = server.NewAdmin(string(m[1]))
		} else if time.Now().After(deadline) {
			b.Fatalf("the daemon does not start: %s", text)
		}
	}
	ctx := b.Context()
	load := func(name, file string) {
		wasm := withManifest(b, readFile(b, file), fmt.Sprintf(siegeManifest, name, name))
		if _, err := admin.Load(ctx, name, server.GuestRequest{Module: wasm}); err != nil {
			b.Fatal(err)
		}
	}
	load("heavy", "../../runtime/testdata/heavy.wasm")

	var siege, stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for range 4 {
		c, err := server.Dial(ctx, socket)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		wg.Go(func() {
			for !stop.Load() {
				if !siege.Load() {
					time.Sleep(time.Millisecond)
				} else if _, err := c.Submit(context.Background(), server.Submit{Body: fmt.Appendf(nil, siegeEnvelope, "heavy")}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	for _, name := range []string{"hog-a", "hog-b"} {
		wasm := withManifest(b, readFile(b, "../../runtime/testdata/hostile/init-as-long-as-it-may.wasm"), fmt.Sprintf(siegeManifest, name, name))
		wg.Go(func() {
			for !stop.Load() {
				if !siege.Load() {
					time.Sleep(time.Millisecond)
					continue
				}
				_, err := admin.Load(context.Background(), name, server.GuestRequest{Module: wasm})
				if err == nil {
					_, err = admin.Unload(context.Background(), name)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}

	good, err := server.Dial(ctx, socket)
	if err != nil {
		b.Fatal(err)
	}
	defer good.Close()
	body := readFile(b, "../../examples/envelopes/good/dynamo-kv-fetch.json")
	round := func(took []time.Duration) []time.Duration {
		for end := time.Now().Add(siegeRound); time.Now().Before(end); {
			begun := time.Now()
			if _, err := good.Submit(ctx, server.Submit{Body: body}); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begun))
			time.Sleep(200 * time.Microsecond) // else one caller is most of the load
		}
		return took
	}
	var attacked, floor []time.Duration
	for b.Loop() {
		siege.Store(true)
		attacked = round(attacked)
		siege.Store(false)
		time.Sleep(50 * time.Millisecond) // until the last load has ended
		var spinners []*exec.Cmd
		for range 2 {
			s := exec.Command("sh", "-c", "while :; do :; done")
			if err := s.Start(); err != nil {
				b.Fatal(err)
			}
			spinners = append(spinners, s)
		}
		floor = round(floor)
		for _, s := range spinners {
			s.Process.Kill()
			s.Wait()
		}
	}
	for name, took := range map[string][]time.Duration{"": attacked, "floor-": floor} {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2]), name+"p50-ns")
		b.ReportMetric(float64(took[len(took)*99/100]), name+"p99-ns")
		b.ReportMetric(float64(took[len(took)-1]), name+"max-ns")
	}
}

// siegeProgram builds the command as it is released, once a run of benchmarks.
func siegeProgram(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "kvrt")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, msg)
	}
	return program
}
