package wazero

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kvrt/kvrt/runtime"
)

// parentVariable makes TestChildDiesWithItsParent the parent that is killed.
const parentVariable = "KVRT_TEST_PARENT"

// Also while it tries a guest.
func TestChildDiesWithItsParent(t *testing.T) {
	if file := os.Getenv(parentVariable); file != "" {
		c, _ := compiler(t, "")
		if filepath.Base(file) == "trial" {
			task := "hang " + file
			t.Fatal(load(tries(c, &task)))
		}
		c.Args, c.Dir = []string{"hang=" + file}, filepath.Dir(file)
		_, err := New(Config{Compiler: c}).Compile(context.Background(), readModule(t, "sdk.wasm"), runtime.CompileOptions{MemoryPages: 16})
		t.Fatal(err)
	}
	for _, at := range []string{"compile", "trial"} {
		t.Run(at, func(t *testing.T) { diesWithItsParent(t, filepath.Join(t.TempDir(), at)) })
	}
}

func diesWithItsParent(t *testing.T, file string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, "-test.run=^TestChildDiesWithItsParent$")
	parent.Env = append(os.Environ(), parentVariable+"="+file)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	for pid == 0 {
		b, _ := os.ReadFile(file)
		fmt.Sscan(string(b), &pid)
		time.Sleep(time.Millisecond)
	}
	if !alive(pid) {
		t.Fatal("the child has ended on its own")
	}
	parent.Process.Kill()
	parent.Wait()
	for alive(pid) { // until the test's own time is up
		time.Sleep(time.Millisecond)
	}
}

// alive tells whether a process runs; one that nobody has waited for does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}
