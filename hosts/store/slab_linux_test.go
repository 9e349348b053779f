package store

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAnotherMappingSeesBlocksAndGenerations(t *testing.T) {
	s := small(t, 4)
	f, err := s.File()
	must(t, err)
	size := len(s.slab.mem)
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	must(t, err)
	defer unix.Munmap(mem)
	put(t, s, "n", 7)
	lease := acquire(t, s, "n", 7)
	info, err := s.Describe(lease)
	must(t, err)
	other := &slab{mem: mem}
	if mem[info.Offset] != 7 || mem[info.Offset+99] != 7 || other.generations(4)[info.GenerationOffset/8].Load() != info.Generation {
		t.Error("another mapping does not see the block")
	}
	if s.Backing() != "memfd" {
		t.Errorf("backing %q", s.Backing())
	}
	if _, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		t.Error("whoever has the file can write to it")
	}
	if err := unix.Ftruncate(int(f.Fd()), 0); err == nil {
		t.Error("whoever has the file can take its pages away")
	}
	if _, err := f.WriteAt([]byte{1}, info.Offset); err == nil {
		t.Error("whoever has the file can write to it by a system call")
	}
	must(t, s.Release(lease))
	must(t, s.Close())
}

func TestWithoutAMemfd(t *testing.T) {
	for _, no := range []error{unix.ENOSYS, unix.EPERM, unix.EMFILE} {
		s := small(t, 4, func(c *Config) {
			c.memory = memfd(func(string, int) (int, error) { return -1, no }).slab
		})
		if s.Backing() != "anonymous memory" {
			t.Errorf("%v: %s", no, s.Backing())
		}
		put(t, s, "n", 1)
		_, err := s.File()
		wants(t, err, ErrNoFile)
		must(t, s.Close())
	}
	_, err := New(Config{Capacity: 1 << 20, memory: memfd(func(string, int) (int, error) { return -1, unix.ENOMEM }).slab})
	wants(t, err, unix.ENOMEM)
}

// Memory that is not there is an error of New: no SIGBUS later, and nobody is killed.
func TestMemoryThatIsNotThere(t *testing.T) {
	var e *MemoryError
	if have := available("/"); have > 1<<50 {
		t.Skip("the kernel does not tell how much memory there is")
	}
	_, err := New(Config{Capacity: 1 << 50, BlockBytes: []uint64{1 << 30}})
	if !errors.As(err, &e) || e.Available == 0 || e.Want < 1<<50 {
		t.Fatal(err)
	}
}

func TestAvailable(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want := func(n uint64) {
		t.Helper()
		if have := available(root); have != n {
			t.Errorf("%d, want %d", have, n)
		}
	}
	want(math.MaxUint64)
	write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   64 kB\n")
	want(64 << 10)
	write("proc/self/cgroup", "0::/a/b\n")
	write("sys/fs/cgroup/a/b/memory.max", "max\n")
	write("sys/fs/cgroup/a/b/memory.current", "1000\n")
	want(64 << 10)
	write("sys/fs/cgroup/a/memory.max", "9000\n")
	write("sys/fs/cgroup/a/memory.current", "8000\n")
	want(1000)
	write("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 500\n")
	want(1500)
	write("sys/fs/cgroup/a/memory.current", "9500\n")
	want(0)
}

func TestHugePagesAreAskedForOnly(t *testing.T) {
	s := small(t, 4, func(c *Config) { c.HugePages = true })
	put(t, s, "n", 1)
	t.Log(s.Backing())
	must(t, s.Close())
}
