package policies_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// TestReadmePolicies builds the policies that the READMEs of the SDKs show, and gives them
// a lineage that is longer than the room which an SDK has for answers at once.
func TestReadmePolicies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"clang-19", "wasm-ld-19", "/usr/bin/rustc", "bash"} {
		tool(t, name)
	}
	dir := t.TempDir()
	for _, part := range []string{"go.mod", "go.sum", "abi", "internal/guestbuild", "policies/build.sh", "sdk/c/include", "sdk/rust/src"} {
		copyTree(t, filepath.Join("..", part), filepath.Join(dir, part))
	}
	sources := map[string][3]string{ // by name: the README, what the block has, the file
		"keep-c":    {"../sdk/c/README.md", "KVRT_POLICY(", "keep.c"},
		"keep-rust": {"../sdk/rust/README.md", ": policy);", "src/lib.rs"},
	}
	for name, s := range sources {
		readme, err := os.ReadFile(s[0])
		if err != nil {
			t.Fatal(err)
		}
		code := ""
		for _, block := range regexp.MustCompile("(?s)```(?:c|rust)\n(.*?)```").FindAllStringSubmatch(string(readme), -1) {
			if strings.Contains(block[1], s[1]) {
				code = block[1]
			}
		}
		if code == "" || strings.Count(code, "\n") > 32 {
			t.Fatalf("%s shows no policy, or one that is not small:\n%s", s[0], code)
		}
		write(t, filepath.Join(dir, "policies", name, s[2]), code)
		write(t, filepath.Join(dir, "policies", name, "manifest.json"), `{"name":"`+name+`","version":"1.0.0","abi":1,"roles":["policy"],"capabilities":["kvrt_session"],"limits":{"memory":8388608,"fuel":2000000}}`)
	}
	run(t, dir, nil, "policies/build.sh")
	for name := range sources {
		wasm, err := os.ReadFile(filepath.Join(dir, "policies", name, name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		info, err := runtime.Inspect(name, wasm)
		if err != nil {
			t.Fatal(err)
		}
		hs := &hosts{t, name, wasm, info.Manifest, runtime.Limits{Instances: 1}}
		h, err := hs.load(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		f := &formulator{t: t, runtime: h.runtime, res: h.runtime.NewFormulation(), sessions: &h.Sessions}
		for _, blocks := range []int{2, 5_000, 2} {
			// Twenty paths with most of their blocks in common: what is asked for is long, what
			// is answered is not.
			events := []string{stored("", chain(1, blocks))}
			for i := range 19 {
				events = append(events, stored(`,"parent_block_hash":`+text(blocks-1), []uint64{uint64(1_000_000 + i)}))
			}
			envelope, p := f.run(`{"request_id":"r1","selected":{"worker_id":7},"session":{"session_id":"s1"},"events":[` + strings.Join(events, ",") + `]}`)
			if p.Reason != abi.ReasonNone || p.Actions != 1 || strings.Count(envelope, `"`) < 2*blocks {
				t.Errorf("%s, %d blocks: %s %s, %d fuel, %v: %.200s", name, blocks, p.Reason, p.Detail, p.Fuel, p.Dropped, envelope)
			}
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
