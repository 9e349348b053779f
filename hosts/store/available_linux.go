package store

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Available is how much memory this process can still have, as far as the kernel tells.
func Available() uint64 { return available("/") }

// available is how much memory this process can have, as far as the kernel tells, under
// root ("/" but in tests). A memfd has no size limit of its own: taking more than there
// is ends in the kernel's killing somebody, not in an error.
func available(root string) uint64 {
	least := uint64(math.MaxUint64)
	if text, err := os.ReadFile(filepath.Join(root, "proc/meminfo")); err == nil {
		if kib, ok := field(string(text), "MemAvailable:"); ok {
			least = kib << 10
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return least
	}
	group := ""
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			group = path
		}
	}
	// Any group above may be the one with the limit. In a container the path may name
	// folders that are not shown there; the root's files are the container's then.
	for dir := filepath.Clean("/" + group); ; dir = filepath.Dir(dir) {
		at := filepath.Join(root, "sys/fs/cgroup", dir)
		limit, limited := number(filepath.Join(at, "memory.max"))
		used, known := number(filepath.Join(at, "memory.current"))
		if limited && known {
			least = min(least, limit-min(limit, used-min(used, inactive(at))))
		}
		if dir == "/" {
			return least
		}
	}
}

// inactive is what a group counts as used, and gives up when it has to: file cache.
func inactive(group string) uint64 {
	text, err := os.ReadFile(filepath.Join(group, "memory.stat"))
	if err != nil {
		return 0
	}
	n, _ := field(string(text), "inactive_file")
	return n
}

func number(file string) (uint64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64) // "max" is no number
	return n, err == nil
}

// field is the number that follows a name at the beginning of a line.
func field(text, name string) (uint64, bool) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			n, err := strconv.ParseUint(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
