//go:build !linux && !darwin

package wazero

import (
	"os"
	"os/exec"
)

// permissions: modes of files mean nothing here, and who may write to the cache is for
// the directory's access list to say.
const permissions = false

func owned(os.FileInfo) bool { return true }

// limit sets none: the parent's clock is the only limit.
func limit(uint64, uint64) error { return nil }

func isolate(*exec.Cmd) {}

func killedBySystem(*os.ProcessState) bool { return false }
