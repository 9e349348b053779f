package server

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// benchClientEnv makes the test binary a client process instead: the value is
// "SOCKET ROUNDS CONNECTIONS WHAT HASHES", WHAT being submit or formulate.
const benchClientEnv = "KVRT_BENCH_CLIENT"

// benchBody is a kv.fetch of n hashes, in msgpack as an engine would send it.
func benchBody(tb testing.TB, n int) []byte {
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = uint64(i)*0x9e3779b97f4a7c15 + 1
	}
	b, err := msgpack.Marshal(map[string]any{"protocol_version": "0.1", "message_id": "m-1", "actions": []any{map[string]any{
		"action_id": "a1", "action_type": "kv.fetch", "action_version": "1.0",
		"payload": map[string]any{"source_control_endpoint": "tcp://127.0.0.1:23280", "block_hashes": hashes}}}})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func benchSubmit(body []byte, conn, round int) request {
	return request{op: opSubmit, seq: uint64(round), format: abi.FormatMsgpack, body: body,
		identity: hint.Identity{Engine: "vllm-0", Leg: abi.LegPrefill, RequestID: "req-" + strconv.Itoa(conn) + "-" + strconv.Itoa(round%512)}}
}

// benchClient is the client process: each connection makes ROUNDS round trips, one
// after the other. It prints the rate and the 99th percentile in ns.
func benchClient(arg string) {
	f := strings.Fields(arg)
	rounds, _ := strconv.Atoi(f[1])
	conns, _ := strconv.Atoi(f[2])
	hashes, _ := strconv.Atoi(f[4])
	ask := benchRequest(nil, f[3], hashes)
	took := make([][]int64, conns)
	cs := make([]net.Conn, conns)
	for i := range cs {
		c, err := net.Dial("unix", f[0])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		cs[i] = c
		var first [4096]byte
		c.Write(appendRequest(nil, &request{op: opHello, version: ProtocolVersion}))
		c.Read(first[:])
	}
	start := time.Now()
	var wg sync.WaitGroup
	for i := range cs {
		wg.Go(func() {
			in := bufio.NewReaderSize(cs[i], 16<<10)
			var out []byte
			buf := make([]byte, 64<<10)
			for n := range rounds {
				q := ask(i, n)
				at := time.Now()
				out = appendRequest(out[:0], &q)
				cs[i].Write(out)
				if _, err := io.ReadFull(in, buf[:4]); err != nil {
					fmt.Println(err)
					os.Exit(1)
				}
				io.ReadFull(in, buf[:binary.BigEndian.Uint32(buf)])
				took[i] = append(took[i], int64(time.Since(at)))
			}
		})
	}
	wg.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	fmt.Println(float64(len(all))/time.Since(start).Seconds(), all[len(all)*99/100], all[len(all)/2])
}

// runBenchClient runs the client process against a socket and reports what it says.
func runBenchClient(b *testing.B, path, what string, hashes int) {
	const conns = 4
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %s %d", benchClientEnv, path, (b.N+conns-1)/conns, conns, what, hashes))
	cmd.Stderr = os.Stderr
	before := cpuTime(b)
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
	var rate, p99, p50 float64
	if _, err := fmt.Sscan(string(out), &rate, &p99, &p50); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.ReportMetric(1e9/rate, "ns/op") // without the client's start
	b.ReportMetric(rate, "ops/s")
	b.ReportMetric(p99, "p99-ns")
	b.ReportMetric(p50, "p50-ns")
}

// cpuTime is what this process, the server, has used: a figure that other load on the
// machine disturbs less than the clock's.
func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// benchHashes is the number of hashes of a hint: about 460 bytes.
const benchHashes = 32

// BenchmarkSocket is four connections from another process, each a round trip at a
// time: a kv.fetch hint in, its result out.
func BenchmarkSocket(b *testing.B) {
	g := newRig(b, withKVFetch(b))
	b.ReportAllocs()
	b.ResetTimer()
	runBenchClient(b, g.path, "submit", benchHashes)
}

// BenchmarkSocketEcho is the floor: the same frames in both directions, and nothing
// between.
func BenchmarkSocketEcho(b *testing.B) {
	answer := appendSubmitReply(nil, 1000, []hint.Result{{ActionID: []byte("a1"), ActionType: []byte("kv.fetch"), ActionVersion: []byte("1.0"),
		Status: abi.StatusAccepted, Guest: "kv-fetch", Generation: 1, DurationNS: 700}}, false, nil)
	benchEcho(b, answer, "submit", benchHashes)
}

// benchEcho answers every frame with one that is made already.
func benchEcho(b *testing.B, answer []byte, what string, hashes int) {
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ln, err := net.Listen("unix", filepath.Join(dir, "echo.sock"))
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { echo(c, answer) })
		}
	})
	b.ReportAllocs()
	b.ResetTimer()
	runBenchClient(b, ln.Addr().String(), what, hashes)
	ln.Close()
	wg.Wait()
}

func echo(c net.Conn, answer []byte) {
	defer c.Close()
	in := frames{limit: DefaultMaxFrame}
	for {
		if _, err := in.fill(c); err != nil {
			return
		}
		for {
			_, ok, _ := in.next()
			if !ok {
				break
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
}
