package wasi_test

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/wasi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

//go:embed testdata/program.wasm
var program []byte

const manifest = `{"name":"program","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"demo.echo"}]}`

// lines is a log that keeps what a guest wrote.
type lines []string

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	*l = append(*l, r.Level.String()+" "+r.Message)
	return nil
}

func solo(t *testing.T, log slog.Handler) *runtime.Solo {
	t.Helper()
	wasm, err := abi.AppendManifest(program, []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	s, err := runtime.NewSolo(context.Background(), runtime.Config{
		Engine: wazero.New(wazero.Config{}), Hosts: []runtime.HostModule{wasi.Module{}}, Log: slog.New(log),
	}, runtime.GuestSpec{Name: "program", Module: wasm})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func frame(t *testing.T) []byte {
	t.Helper()
	action := `{"action_id":"a","action_type":"demo.echo","action_version":"1.0","payload":{}}`
	var f hint.Frame
	body := `{"protocol_version":"0.1","message_id":"m","actions":[` + strings.Repeat(action+",", 6) + action + `]}`
	if err := f.Decode(abi.FormatJSON, []byte(body), hint.Limits{}); err != nil {
		t.Fatal(err)
	}
	f.Finish(hint.Identity{RequestID: "r"})
	return f.Bytes()
}

// TestProgram calls a guest that is written as a program. It has no grant.
func TestProgram(t *testing.T) {
	var log lines
	s := solo(t, &log)
	for _, c := range []struct {
		position uint32
		want     string
		log      string
		dropped  bool
	}{
		{1, "handler_trap: the guest exited with code 3", "[WARN hello WARN world WARN ld]", false},
		{2, ": ", "[INFO hello INFO world INFO hello INFO wor]", false},
		{3, "handler_out_of_fuel: the call's fuel is used up", fmt.Sprint(lines(slices16())), true},
		{4, "handler_out_of_fuel: the call's fuel is used up", "[]", false},
		{5, "handler_out_of_fuel: the call's fuel is used up", "[]", false},
		{6, ": ", "[]", false},
	} {
		log = nil
		res, err := s.Call(context.Background(), runtime.SoloCall{Role: abi.RoleHandler, Frame: frame(t), Position: c.position})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Reason.String() + ": " + res.Detail; got != c.want {
			t.Errorf("position %d: %s, want %s", c.position, got, c.want)
		}
		if got := fmt.Sprint(log); got != c.log || c.dropped != (res.LogDropped > 0) {
			t.Errorf("position %d: log %s, %d dropped", c.position, got, res.LogDropped)
		}
	}
}

// slices16 is what is kept of a flood of empty lines.
func slices16() []string {
	out := make([]string, abi.MaxLogLines)
	for i := range out {
		out[i] = "INFO "
	}
	return out
}

// TestReplay: the same clocks give the same random bytes on a fresh instance, other
// clocks give others.
func TestReplay(t *testing.T) {
	s := solo(t, slog.DiscardHandler)
	var seen [2]int
	for wall := int64(1); wall <= 64; wall++ {
		var got [2]runtime.SoloResult
		for i := range got {
			if _, err := s.Fresh(context.Background()); err != nil {
				t.Fatal(err)
			}
			var err error
			if got[i], err = s.Call(context.Background(), runtime.SoloCall{Role: abi.RoleHandler, Frame: frame(t), Wall: wall, Monotonic: 7}); err != nil {
				t.Fatal(err)
			}
		}
		if got[0].Status != got[1].Status || got[0].Fuel != got[1].Fuel {
			t.Errorf("at %d: %v and %v", wall, got[0], got[1])
		}
		seen[got[0].Status&1]++
	}
	if seen[0] < 16 || seen[1] < 16 {
		t.Errorf("of 64 seeds %d and %d gave the one and the other", seen[0], seen[1])
	}
}

// TestText holds the committed module to its text.
func TestText(t *testing.T) {
	wat2wasm, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("wat2wasm is not installed: run make tools")
	}
	out := filepath.Join(t.TempDir(), "out.wasm")
	if msg, err := exec.Command(wat2wasm, "-o", out, "testdata/program.wat").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	if b, err := os.ReadFile(out); err != nil || !bytes.Equal(b, program) {
		t.Errorf("program.wasm is not what program.wat gives (%v)", err)
	}
}
