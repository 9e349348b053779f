package kvevents

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/go-zeromq/zmq4"
)

var (
	errBudget   = errors.New("too many replays in a row")
	errReplay   = errors.New("the replay endpoint answers with something else")
	errTooMuch  = errors.New("the replay is over its limit of batches or bytes")
	errNoEnd    = errors.New("the replay did not end in time")
	errDropping = errors.New("the publisher drops batches of its replay")
)

// catchUp asks the publisher for all batches from next on and applies them. It runs
// on work's goroutine while live batches wait.
//
// The batch before next is asked for as well: when the publisher has another one under
// that number, or none, it has begun anew, even if its sequence went past ours
// meanwhile. A hole at the beginning of an answer is what the publisher no longer has, and
// clears; one in the middle, or before to, which is known to have been sent, is its
// socket's, which drops what the peer is too slow to take, and is asked for again. ok says
// that there is nothing more to have.
func (f *feed) catchUp(ctx context.Context, to uint64) (ok bool) {
	t := &f.track
	if !t.mayReplay(f.cfg, time.Now()) {
		f.replayFailed(errBudget)
		return false
	}
	f.count.replays.Add(1)
	limited, cancel := context.WithTimeout(ctx, f.cfg.ReplayTimeout)
	defer cancel()
	left := allowance{f.cfg.ReplayBatches, f.cfg.ReplayBytes}
	var err error
	for round := 1; ; round++ {
		var again bool
		if again, err = f.replayRound(limited, to, &left); !again {
			break
		}
		if round == f.cfg.ReplayRounds {
			err = cmp.Or(err, errDropping)
			break
		}
		if err != nil && !pause(limited, f.cfg.BackoffMin) {
			break
		}
	}
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		if limited.Err() != nil {
			err = fmt.Errorf("%w: %w", errNoEnd, err)
		}
		f.replayFailed(err)
		return false
	}
	f.notify(Notice{What: Replayed, To: t.next})
	return true
}

func (f *feed) replayFailed(err error) {
	f.count.replaysFailed.Add(1)
	f.notify(Notice{What: ReplayFailed, From: f.track.next, Err: err})
}

// mayReplay takes a token of a bucket.
func (t *track) mayReplay(cfg *Config, now time.Time) bool {
	t.tokens += now.Sub(t.filled).Seconds() / cfg.ReplayEvery.Seconds()
	t.tokens = min(t.tokens, float64(cfg.ReplayBurst))
	t.filled = now
	if t.tokens < 1 {
		return false
	}
	t.tokens--
	return true
}

// An allowance is what is left of a replay's limits.
type allowance struct{ batches, bytes int }

func (a *allowance) take(payload []byte) bool {
	a.batches--
	a.bytes -= len(payload)
	return a.batches >= 0 && a.bytes >= 0
}

// replayRound asks once. again says that another round may do better; err is nil when
// this one ended, or found a reason to ask anew.
func (f *feed) replayRound(ctx context.Context, to uint64, left *allowance) (again bool, err error) {
	r := replay{f: f, left: left, from: f.track.next, next: f.track.next, to: to, first: true}
	if r.proving = f.track.proof; r.proving {
		r.from--
	}
	err = f.ask(ctx, r.from, func(msg [][]byte) bool {
		r.message(msg)
		return r.result == replayGoesOn
	})
	if err != nil {
		return true, err
	}
	return r.result == replayAgain, r.err
}

// askPublisher asks on a connection of its own, so that a late answer finds nobody, and has
// its messages taken while more are wanted.
func (f *feed) askPublisher(ctx context.Context, from uint64, take func([][]byte) bool) error {
	c, err := dial(ctx, f.replay, zmq4.Dealer, f.cfg.Limits.Bytes+maxOverhead, f.cfg.DialTimeout)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.send(nil, binary.BigEndian.AppendUint64(nil, from)); err != nil {
		return err
	}
	for {
		msg, err := c.recv()
		if err != nil {
			return err
		}
		if !take(msg) {
			return nil
		}
		if err := c.raw.SetReadDeadline(time.Now().Add(f.cfg.ReplayIdle)); err != nil {
			return err
		}
	}
}

// What a message makes of a replay.
const (
	replayGoesOn uint8 = iota
	replayAgain
	replayOver
)

// A replay is one round's answer as it comes in.
type replay struct {
	f       *feed
	left    *allowance
	from    uint64
	next    uint64 // the batch to apply next when it was asked
	to      uint64 // batches before this one were sent
	proving bool   // the batch before next has not come yet
	first   bool   // nothing has come yet
	result  uint8
	err     error
}

func (r *replay) end(result uint8, err error) { r.result, r.err = result, err }

// message takes one message of the answer. In front of its number and its payload are an
// empty frame and, of newer publishers, a topic.
func (r *replay) message(msg [][]byte) {
	t := &r.f.track
	seq, payload, ok := numbered(msg)
	switch {
	case !ok || seq == endSeq && len(payload) > 0:
		r.end(replayOver, errReplay)
	case seq == endSeq && r.proving: // it does not have what it once sent
		r.f.restarted()
		r.end(replayAgain, nil)
	case seq == endSeq && r.next < t.next && t.next < r.to:
		r.end(replayAgain, nil)
	case seq == endSeq:
		r.end(replayOver, nil)
	case !r.left.take(payload):
		r.end(replayOver, errTooMuch)
	case seq < r.from: // more than was asked for
	case r.proving && seq == r.from:
		r.proving, r.first = false, false
		if maphash.Bytes(t.seed, payload) != t.digest {
			r.f.restarted()
			r.end(replayAgain, nil)
		}
	default:
		r.batch(seq, payload)
	}
}

func (r *replay) batch(seq uint64, payload []byte) {
	f, t := r.f, &r.f.track
	t.begun = true
	switch {
	case seq < t.next:
		return
	case seq > t.next && !r.first:
		r.end(replayAgain, nil)
		return
	case seq > t.next:
		f.count.gaps.Add(1)
		f.notify(Notice{What: Gap, From: t.next, To: seq})
		f.clear(errGap)
	case r.proving: // it may have begun anew, and this one may be of another sequence
		f.clear(errUnproven)
	}
	r.first, r.proving = false, false
	f.count.replayed.Add(1)
	f.apply(seq, payload)
}
