package config

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Default is the configuration without a file: the built-in guests, a hint store that
// only loopback sources may feed from, and local addresses. A file changes the keys that
// it holds and leaves the others as they are here; its lists replace these.
func Default() *Config {
	embedded := func(name string, grants ...string) Guest {
		return Guest{Name: name, Module: embeddedPrefix + name, Grants: grants}
	}
	return &Config{
		Guests: []Guest{
			embedded("kv-fetch", "kvrt_fetch", "kvrt_log"),
			embedded("kv-retain", "kvrt_store", "kvrt_log"),
			embedded("router-hint", "kvrt_log"),
			embedded("kv-evict", "kvrt_store", "kvrt_log"),
			embedded("kv-prefetch", "kvrt_fetch", "kvrt_gpu", "kvrt_log"),
		},
		Fetch: Fetch{
			AllowedSources: []string{"tcp://127.0.0.0/8", "tcp://[::1]/128"},
			TTL:            10 * time.Minute,
			TombstoneTTL:   30 * time.Second,
			MaxEntries:     1 << 16,
			MaxHashes:      1 << 17,
		},
		Store:          Store{BlockBytes: []Size{1 << 20}, Checksum: true},
		Formulate:      Formulate{KVFetch: FetchOne, KVRetain: RetainAny, Payloads: PayloadsAny},
		RequestHints:   HintsKeep,
		ForwardUnknown: UnknownKeep,
		Listen:         Listen{Socket: DefaultSocket(), Admin: "127.0.0.1:9640"},
		Limits:         Limits{BodyBytes: 4 << 20, Actions: 1024},
		Compile:        Compile{Timeout: 10 * time.Second, Memory: 512 << 20, CacheSize: 1 << 30, Children: 2},
		Log:            Log{Level: LevelInfo, Format: FormatText},
		DrainTimeout:   30 * time.Second,
	}
}

// DefaultSocket is the path of the Unix socket where none is configured:
//
//   - /run/kvrt/kvrt.sock when this user can write to /run/kvrt, which a service manager
//     or a container image provides;
//   - else kvrt.sock in $XDG_RUNTIME_DIR, when that is an absolute path to a folder that
//     this user can write to;
//   - else /tmp/kvrt-UID/kvrt.sock. Whoever listens there creates the folder with mode
//     0700 and refuses one that belongs to another user, since anybody may create it.
//
// A client finds the daemon by the same rule when both run as the same user in the same
// environment; otherwise name the socket.
func DefaultSocket() string {
	return defaultSocket("/run/kvrt", os.Getenv("XDG_RUNTIME_DIR"), os.Geteuid(), canWrite)
}

func defaultSocket(system, user string, uid int, canWrite func(dir string) bool) string {
	switch {
	case canWrite(system):
		return filepath.Join(system, "kvrt.sock")
	case filepath.IsAbs(user) && canWrite(user):
		return filepath.Join(user, "kvrt.sock")
	}
	return filepath.Join("/tmp", "kvrt-"+strconv.Itoa(uid), "kvrt.sock")
}

// canWrite reports whether this process may create files in dir.
func canWrite(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) == nil
}
