package wazero

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/runtime"
)

// BenchmarkCall measures the boundary: an empty export and a host call from an empty
// handler as floors; then a frame written into the arena and a handler of the C SDK,
// without and with a host call; then the same under wazero's deadline.
func BenchmarkCall(b *testing.B) {
	b.Run("empty", func(b *testing.B) {
		in, c := instantiate(b, Config{}, "bare.wasm", constant), call()
		for b.Loop() {
			if err := in.Call(c, runtime.ExportIdle, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	handle := func(name string, cfg Config, file string, write bool) {
		b.Run(name, func(b *testing.B) {
			in, c := instantiate(b, cfg, file, constant), call()
			frame := oneHash(b)
			stack := []uint64{uint64(len(frame)), 0, 0}
			if err := in.Call(c, runtime.ExportArena, stack[:1]); err != nil {
				b.Fatal(err)
			}
			arena := stack[0] >> 32
			b.ReportAllocs()
			for b.Loop() {
				if write {
					copy(in.Memory()[arena:], frame)
				}
				stack[0], stack[1], stack[2] = arena, uint64(len(frame)), 0
				if err := in.Call(c, runtime.ExportHandle, stack); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	handle("bare+host", Config{}, "bare.wasm", false)
	handle("sdk", Config{}, "sdk.wasm", true)
	handle("sdk+host", Config{}, "sdk-host.wasm", true)
	handle("sdk+deadline", Config{Deadline: time.Minute}, "sdk.wasm", true)
}

// oneHash is the frame of a kv.fetch with one block hash.
func oneHash(tb testing.TB) []byte {
	var f hint.Frame
	if err := f.Decode(abi.FormatJSON, []byte(`{"protocol_version":"0.1","message_id":"m1","actions":[{"action_id":"a1","action_type":"kv.fetch","action_version":"1.0",`+
		`"payload":{"source_control_endpoint":"tcp://127.0.0.1:23280","block_hashes":[18446744073709551615]}}]}`), hint.Limits{}); err != nil {
		tb.Fatal(err)
	}
	f.Finish(hint.Identity{RequestID: "r1"})
	return f.Bytes()
}

// BenchmarkInstantiate makes and closes an instance of a C guest.
func BenchmarkInstantiate(b *testing.B) {
	wasm, err := os.ReadFile("testdata/sdk.wasm")
	if err != nil {
		b.Fatal(err)
	}
	m, err := New(Config{}).Compile(context.Background(), wasm, runtime.CompileOptions{MemoryPages: 16})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	b.ReportAllocs()
	for b.Loop() {
		in, err := m.Instantiate(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if err := in.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
