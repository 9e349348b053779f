package kvevents

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/internal/pyenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A publisher is a process with libzmq's sockets; see testdata/publisher.py.
type publisher struct {
	t testing.TB
	*pyenv.Process
}

type m map[string]any

func newPublisher(t testing.TB) *publisher {
	t.Helper()
	return &publisher{t, pyenv.Start(t, filepath.Join("testdata", "publisher.py"))}
}

// publish sends one batch for each list of events.
func (p *publisher) publish(args m, batches ...[]m) {
	p.t.Helper()
	var all []m
	for _, b := range batches {
		all = append(all, m{"events": b, "data_parallel_rank": 0})
	}
	command := m{"batches": all}
	for k, v := range args {
		command[k] = v
	}
	p.Do("publish", command)
}

func stored(parent any, hashes ...uint64) []m {
	return []m{{"type": "stored", "parent_block_hash": parent, "block_hashes": hashes, "medium": "GPU", "session_id": "s"}}
}

func removed(hashes ...uint64) []m {
	return []m{{"type": "removed", "block_hashes": hashes, "medium": "GPU"}}
}

// A place is the endpoints of a publisher in the test's own folder, so that it can come
// back to them.
func place(t testing.TB) Endpoints {
	dir := t.TempDir()
	return Endpoints{Events: "ipc://" + filepath.Join(dir, "events"), Replay: "ipc://" + filepath.Join(dir, "replay")}
}

// A log is a sink that writes down what it is told, and lets tests wait for it.
type log struct {
	mu    sync.Mutex
	more  *sync.Cond
	lines []string
	holds map[hint.Worker]map[uint64]bool // blocks by worker
}

func newLog() *log {
	l := &log{holds: map[hint.Worker]map[uint64]bool{}}
	l.more = sync.NewCond(&l.mu)
	return l
}

func (l *log) Apply(e *session.Event) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	blocks := l.holds[e.Worker]
	if blocks == nil {
		blocks = map[uint64]bool{}
		l.holds[e.Worker] = blocks
	}
	switch e.Op {
	case session.OpStored:
		l.say("%v stored %v", e.Worker, e.Hashes)
		for _, h := range e.Hashes {
			blocks[h] = true
		}
	case session.OpRemoved:
		l.say("%v removed %v", e.Worker, e.Hashes)
		for _, h := range e.Hashes {
			delete(blocks, h)
		}
	case session.OpCleared:
		l.say("%v cleared", e.Worker)
		clear(blocks)
	}
	return true, nil
}

func (l *log) say(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
	l.more.Broadcast()
}

func (l *log) notify(n Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n.What {
	case Disconnected, Cleared, Connected, Unreadable, ReplayFailed:
		l.say("%v", n.What)
	default:
		l.say("%v %d %d", n.What, n.From, n.To)
	}
}

// wait takes the lines up to and including the next one that is want.
func (l *log) wait(t testing.TB, want string) (skipped []string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; ; i++ {
		for i >= len(l.lines) {
			l.more.Wait()
		}
		if l.lines[i] == want {
			skipped = l.lines[:i]
			l.lines = l.lines[i+1:]
			return skipped
		}
	}
}

// blocks are what a worker holds.
func (l *log) blocks(w hint.Worker) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.holds[w])
}
