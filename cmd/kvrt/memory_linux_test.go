package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/kvrt/kvrt/server"
)

// TestMemoryReturns: the daemon's resident memory after large modules were loaded and
// unloaded, and refused, is what it was before; while one is loaded it is not much more
// than the module takes.
func TestMemoryReturns(t *testing.T) {
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	daemon := exec.Command(plain(t), "serve", "--socket", filepath.Join(dir, "s"), "--admin", "127.0.0.1:0", "--log-level", "error")
	daemon.Stderr, daemon.Env = log, append(os.Environ(), compileCache+"="+filepath.Join(dir, "cache"))
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		daemon.Process.Kill()
		daemon.Wait()
	}()
	var admin *server.Admin
	for range 600 {
		if m := adminLine.FindSubmatch(readFile(t, log.Name())); m != nil {
			admin = server.NewAdmin(string(m[1]))
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if admin == nil {
		t.Fatalf("the daemon does not start: %s", readFile(t, log.Name()))
	}
	if _, err := admin.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	const size = 10 << 20
	module := withManifest(t, laden(readFile(t, "../../runtime/testdata/heavy.wasm"), size), `{"name":"large","version":"1.0.0","abi":1,"roles":["handler"],"action_types":[{"type":"demo.large"}]}`)
	before := resident(t, daemon.Process.Pid)
	for range 2 {
		if _, err := admin.Load(t.Context(), "large", server.GuestRequest{Module: module}); err != nil {
			t.Fatal(err)
		}
		// As given and as rewritten; what the load took in passing is gone.
		waitFor(t, daemon.Process.Pid, before+3*size+8<<20)
		if _, err := admin.Unload(t.Context(), "large"); err != nil {
			t.Fatal(err)
		}
		waitFor(t, daemon.Process.Pid, before+8<<20)
		broken := append(module[:len(module):len(module)], 0x0a)
		if _, err := admin.Load(t.Context(), "large", server.GuestRequest{Module: broken}); err == nil {
			t.Fatal("a module with a byte too many is loaded")
		}
		waitFor(t, daemon.Process.Pid, before+8<<20)
	}
}

// laden appends a data section with so many bytes, which no instance needs in memory.
func laden(wasm []byte, size int) []byte {
	content := binary.AppendUvarint([]byte{1, 1}, uint64(size))
	noise := rand.New(rand.NewPCG(1, 2))
	for range size / 8 {
		content = binary.LittleEndian.AppendUint64(content, noise.Uint64())
	}
	out := binary.AppendUvarint(append(wasm[:len(wasm):len(wasm)], 11), uint64(len(content)))
	return append(out, content...)
}

var residentLine = regexp.MustCompile(`(?m)^VmRSS:\s+([0-9]+) kB`)

func resident(t *testing.T, pid int) int {
	t.Helper()
	m := residentLine.FindSubmatch(readFile(t, fmt.Sprintf("/proc/%d/status", pid)))
	if m == nil {
		t.Fatal("the daemon has ended")
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// waitFor waits until a process has no more resident memory than that.
func waitFor(t *testing.T, pid, most int) {
	t.Helper()
	for range 600 {
		if resident(t, pid) <= most {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%d bytes are resident, want %d at most", resident(t, pid), most)
}
