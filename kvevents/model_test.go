package kvevents

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A world is a publisher, its network and one feed, without sockets or goroutines: what
// happens, and what replays answer, is drawn.
type world struct {
	t    *rapid.T
	f    *feed
	sink *log

	kind     string // of replays: "good" ones always answer in full
	ring     int    // batches that the publisher keeps
	clock    byte   // makes all batches differ
	payloads [][]byte
	truth    []map[uint64]bool // blocks of the publisher after each batch
	pending  []item            // what is between the publisher and the feed
	up       bool
	calm     bool // nothing happens while a replay runs
	conns    uint64
}

// publish makes a batch, on which the network may lose.
func (w *world) publish(lose bool) {
	blocks := map[uint64]bool{}
	if n := len(w.truth); n > 0 {
		maps.Copy(blocks, w.truth[n-1])
	}
	w.clock++
	b := []byte{0x92, w.clock, 0x91, 0x92}
	if w.clock >= 0x80 {
		b = []byte{0x92, 0xcc, w.clock, 0x91, 0x92}
	}
	h := rapid.Uint64Range(0, 9).Draw(w.t, "block")
	switch rapid.SampledFrom([]string{"stored", "stored", "removed", "cleared"}).Draw(w.t, "event") {
	case "stored":
		b = append(append(b, "\xabBlockStored\x91"...), byte(h))
		blocks[h] = true
	case "removed":
		b = append(append(b, "\xacBlockRemoved\x91"...), byte(h))
		delete(blocks, h)
	case "cleared":
		b = append(b, "\xb0AllBlocksCleared\xc0"...)
		clear(blocks)
	}
	w.payloads, w.truth = append(w.payloads, b), append(w.truth, blocks)
	if w.up && !lose {
		w.pending = append(w.pending, item{what: itemBatch, seq: uint64(len(w.truth) - 1), payload: b})
	}
}

// overflow makes a batch that the feed's queue has no room for.
func (w *world) overflow() {
	w.publish(true)
	if w.up {
		w.pending = append(w.pending, item{what: itemLost, seq: uint64(len(w.truth) - 1)})
	}
}

func (w *world) connect() {
	if !w.up {
		w.up = true
		w.conns++
		w.pending = append(w.pending, item{what: itemConnected, seq: w.conns})
	}
}

// ask is the replay endpoint. It answers as the publisher is now, which may be another one
// than the pending batches are of; and the publisher goes on meanwhile.
func (w *world) ask(_ context.Context, from uint64, take func([][]byte) bool) error {
	answer := "whole"
	if w.kind == "bad" {
		answer = rapid.SampledFrom([]string{"whole", "error", "hole", "cut"}).Draw(w.t, "answer")
	}
	if answer == "error" {
		return errors.New("nobody there")
	}
	first := uint64(max(0, len(w.truth)-w.ring))
	for seq := max(from, first); seq < uint64(len(w.truth)); seq++ {
		switch {
		case answer == "hole" && rapid.Bool().Draw(w.t, "drop"):
			continue
		case answer == "cut" && rapid.IntRange(0, 3).Draw(w.t, "cut") == 0:
			return io.ErrUnexpectedEOF
		}
		if !take([][]byte{nil, binary.BigEndian.AppendUint64(nil, seq), w.payloads[seq]}) {
			return nil
		}
	}
	if !w.calm && rapid.Bool().Draw(w.t, "meanwhile") {
		w.publish(rapid.Bool().Draw(w.t, "lose"))
	}
	take([][]byte{nil, []byte("\xff\xff\xff\xff\xff\xff\xff\xff"), nil})
	return nil
}

// deliver has the feed take one pending item.
func (w *world) deliver() {
	if len(w.pending) == 0 {
		return
	}
	it := w.pending[0]
	w.pending = w.pending[1:]
	switch it.what {
	case itemConnected:
		w.f.onConnected(context.Background(), it.seq)
	case itemBatch:
		w.f.onBatch(context.Background(), it.seq, it.payload)
	case itemLost:
		w.f.onLost(context.Background(), it.seq)
	}
}

// check holds what the sink knows against the publisher once nothing is on its way.
func (w *world) check() {
	for len(w.pending) > 0 {
		w.deliver()
	}
	w.connect()
	w.calm = true
	w.publish(false)
	for len(w.pending) > 0 {
		w.deliver()
	}
	w.calm = false
	now := w.truth[len(w.truth)-1]
	for h := range w.sink.holds[rank0] {
		if !now[h] {
			w.t.Fatalf("block %d is known and is not there: %v, the publisher has %v", h, keys(w.sink.holds[rank0]), keys(now))
		}
	}
	if next := w.f.track.next; w.kind == "good" && next != uint64(len(w.truth)) {
		w.t.Fatalf("next %d, want %d", next, len(w.truth))
	}
	if w.kind == "good" && w.ring > 1000 && !maps.Equal(now, w.sink.holds[rank0]) {
		w.t.Fatalf("the sink has %v, the publisher %v", keys(w.sink.holds[rank0]), keys(now))
	}
}

func keys(m map[uint64]bool) []uint64 { return slices.Sorted(maps.Keys(m)) }

// TestModel: whatever is lost, restarted, reconnected and badly replayed, the sink knows no
// block that the publisher does not have; and all of them when replays answer in full.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, sink: newLog(),
			kind: rapid.SampledFrom([]string{"good", "bad"}).Draw(t, "replays"),
			ring: rapid.SampledFrom([]int{1 << 20, 1 << 20, 3}).Draw(t, "ring"),
		}
		cfg := Config{BackoffMin: 1, ReplayBurst: 1 << 20, ReplayTimeout: time.Hour, ReplayRounds: 3}.withDefaults()
		w.f = &feed{cfg: &cfg, worker: rank0, where: Endpoints{Events: "ipc://x", Replay: "ipc://y"}, sink: w.sink, ask: w.ask}
		w.f.track.init(&cfg)
		w.connect()
		t.Repeat(map[string]func(*rapid.T){
			"publish":    func(*rapid.T) { w.publish(false) },
			"lose":       func(*rapid.T) { w.publish(true) },
			"overflow":   func(*rapid.T) { w.overflow() },
			"deliver":    func(*rapid.T) { w.deliver() },
			"disconnect": func(*rapid.T) { w.up = false },
			"connect":    func(*rapid.T) { w.connect() },
			"restart":    func(*rapid.T) { w.up, w.truth, w.payloads = false, nil, nil },
			"check":      func(*rapid.T) { w.check() },
		})
		w.check()
	})
}
