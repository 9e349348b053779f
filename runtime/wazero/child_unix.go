//go:build linux || darwin

package wazero

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// permissions tells that modes of files mean something.
const permissions = true

// owned tells whether a file is this user's, under one name.
func owned(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && (info.IsDir() || st.Nlink == 1)
}

// niceness is how far a child stands back.
const niceness = 10

// cpuGrace is how many seconds of CPU time more a child has to say that they are up.
const cpuGrace = 2

// limit takes from this process what a compilation may not have. CPU time that is used
// up ends it with a word, and later without; too large a file ends it; memory that is
// used up ends it through the Go runtime.
func limit(cpuSeconds, memory uint64) error {
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	go func() {
		<-over
		fmt.Fprintln(os.Stderr, cpuSign)
		os.Exit(1)
	}()
	data := dataSize()
	memory = min(memory, math.MaxInt64-data) + data
	for what, most := range map[int]uint64{
		syscall.RLIMIT_CPU: cpuSeconds, syscall.RLIMIT_DATA: memory, syscall.RLIMIT_FSIZE: maxCode, syscall.RLIMIT_CORE: 0,
	} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(what, &now); err != nil {
			return os.NewSyscallError("getrlimit", err)
		}
		hard := most
		if what == syscall.RLIMIT_CPU {
			hard += cpuGrace
		}
		hard = min(hard, now.Max) // only lower it
		if err := syscall.Setrlimit(what, &syscall.Rlimit{Cur: min(most, hard), Max: hard}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	// The process group is the child alone, with each of its threads.
	return os.NewSyscallError("setpriority", syscall.Setpriority(syscall.PRIO_PGRP, 0, niceness))
}

// isolate gives the command a process group of its own, which is what is killed.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// signalled tells by which signal a process ended, or returns 0.
func signalled(state *os.ProcessState) syscall.Signal {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return 0
}

func killedBySystem(state *os.ProcessState) bool {
	s := signalled(state)
	return s == syscall.SIGKILL || s == syscall.SIGXCPU
}
