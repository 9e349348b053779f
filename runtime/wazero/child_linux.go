package wazero

import (
	"fmt"
	"os"
	"syscall"
)

// dieWithParent has the kernel kill the child when the thread that started it ends,
// which spawn therefore holds.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// dataSize is how much private writable memory this process has, in bytes: what
// RLIMIT_DATA counts. The limit of a job comes on top.
func dataSize() uint64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident, shared, text, lib, data uint64
	if _, err := fmt.Sscan(string(raw), &size, &resident, &shared, &text, &lib, &data); err != nil {
		return 0
	}
	return data * uint64(os.Getpagesize())
}
