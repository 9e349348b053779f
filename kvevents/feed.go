package kvevents

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/kvrt/kvrt/hint"
)

// A feed follows one publisher with two goroutines: read takes messages off the
// socket whatever happens, work applies them. Only work knows the sequence.
type feed struct {
	cfg            *Config
	worker         hint.Worker
	where          Endpoints
	sink           Sink
	events, replay endpoint
	queue          *queue
	count          counters
	cancel         context.CancelFunc
	done           sync.WaitGroup

	track track // work's own
	ask   func(ctx context.Context, from uint64, take func([][]byte) bool) error
}

// start expects endpoints that Check has passed.
func start(cfg *Config, all *pool, worker hint.Worker, where Endpoints, to Sink) *feed {
	ctx, cancel := context.WithCancel(context.Background())
	f := &feed{cfg: cfg, worker: worker, where: where, sink: to, cancel: cancel, queue: newQueue(cfg.QueueBatches, cfg.QueueBytes, all)}
	f.events, _ = parseEndpoint(where.Events)
	if where.Replay != "" {
		f.replay, _ = parseEndpoint(where.Replay)
	}
	f.track.init(cfg)
	f.ask = f.askPublisher
	f.done.Go(func() { f.read(ctx) })
	f.done.Go(func() { f.work(ctx) })
	return f
}

// stop ends the feed; afterwards nothing of it reaches the sink.
func (f *feed) stop() {
	f.cancel()
	f.done.Wait()
	f.queue.close()
}

func (f *feed) notify(n Notice) {
	if f.cfg.Notify != nil {
		n.Worker = f.worker
		f.cfg.Notify(n)
	}
}

// read keeps a subscription.
func (f *feed) read(ctx context.Context) {
	wait := f.cfg.BackoffMin
	for {
		got, err := f.subscribe(ctx)
		f.count.connected.Store(false)
		if ctx.Err() != nil {
			return
		}
		f.notify(Notice{What: Disconnected, Err: err})
		if got {
			wait = f.cfg.BackoffMin
		}
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, f.cfg.BackoffMax)
	}
}

// pause waits for d, less up to its half, and reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d - rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// subscribe connects and takes messages until the connection ends; got reports whether
// one came.
func (f *feed) subscribe(ctx context.Context) (got bool, err error) {
	limit := f.cfg.Limits.Bytes + maxOverhead
	c, err := dial(ctx, f.events, zmq4.Sub, limit, f.cfg.DialTimeout)
	if err != nil {
		return false, err
	}
	defer c.close()
	if err := c.send(append([]byte{1}, f.where.Topic...)); err != nil {
		return false, err
	}
	number := f.count.connections.Add(1)
	f.count.connected.Store(true)
	f.notify(Notice{What: Connected})
	f.queue.push(item{what: itemConnected, seq: number})
	for {
		msg, err := c.recv()
		if err != nil {
			return got, err
		}
		got = true
		seq, payload, ok := numbered(msg)
		if !ok || len(msg) != 3 || seq == endSeq {
			f.count.badMessages.Add(1)
			continue
		}
		if !f.queue.push(item{what: itemBatch, seq: seq, payload: payload}) {
			f.count.dropped.Add(1)
		}
	}
}

// maxOverhead is for the frames of a message that are not its payload, in bytes.
const maxOverhead = 64 << 10

// endSeq, with an empty payload, ends a replay.
const endSeq = math.MaxUint64

// numbered takes the sequence number and the payload off the end of a message: what is
// before them differs between publishers.
func numbered(msg [][]byte) (seq uint64, payload []byte, ok bool) {
	n := len(msg)
	if n < 2 || n > 4 || len(msg[n-2]) != 8 {
		return 0, nil, false
	}
	return binary.BigEndian.Uint64(msg[n-2]), msg[n-1], true
}
