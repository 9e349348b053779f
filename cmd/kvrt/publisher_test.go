package main

import (
	"path/filepath"
	"testing"

	"github.com/kvrt/kvrt/internal/pyenv"
)

// publisher is a process with libzmq's sockets, as a serving engine has them.
type publisher struct {
	t testing.TB
	*pyenv.Process
}

type m map[string]any

func newPublisher(t testing.TB) *publisher {
	t.Helper()
	return &publisher{t, pyenv.Start(t, filepath.Join("..", "..", "kvevents", "testdata", "publisher.py"))}
}

// publish sends one batch of events of rank 0.
func (p *publisher) publish(events ...m) {
	p.t.Helper()
	p.Do("publish", m{"batches": []m{{"events": events, "data_parallel_rank": 0}}})
}

func storedEvent(parent any, hashes ...uint64) m {
	return m{"type": "stored", "parent_block_hash": parent, "block_hashes": hashes, "medium": "GPU", "session_id": "s"}
}
