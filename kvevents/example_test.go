package kvevents_test

import (
	"fmt"
	"os"
	"os/signal"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/kvevents"
)

// A printer is a sink that shows what it is told.
type printer struct{}

func (*printer) Apply(e *session.Event) (bool, error) {
	switch e.Op {
	case session.OpStored:
		fmt.Printf("%v stored %d blocks of session %q\n", e.Worker, len(e.Hashes), e.Session)
	case session.OpRemoved:
		fmt.Printf("%v removed %d blocks\n", e.Worker, len(e.Hashes))
	case session.OpCleared:
		fmt.Printf("%v holds nothing\n", e.Worker)
	}
	return true, nil
}

// This prints what a vLLM of this machine publishes when it was started with
//
//	--kv-events-config '{"enable_kv_cache_events": true, "publisher": "zmq",
//	  "endpoint": "tcp://*:5557", "replay_endpoint": "tcp://*:5558"}'
//
// until it is interrupted. A router gives the lineage index of the worker's partition as
// the sink.
func Example() {
	m := kvevents.New(kvevents.Config{
		Notify: func(n kvevents.Notice) { fmt.Println(n.Worker, n.What, n.Err) },
	})
	defer m.Close()
	worker := hint.Worker{ID: hint.NamedWorker("local"), Rank: 0, HasRank: true}
	where := kvevents.Endpoints{Events: "tcp://127.0.0.1:5557", Replay: "tcp://127.0.0.1:5558"}
	if err := m.Set(worker, where, new(printer)); err != nil {
		fmt.Println(err)
		return
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	<-stop
}

func ExampleDecoder() {
	// [1.5, [["BlockRemoved", [7, -1], "GPU"], ["FromTheFuture", 1]], 0]
	batch := []byte("\x93\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\x92\x93\xacBlockRemoved\x92\x07\xff\xa3GPU\x92\xadFromTheFuture\x01\x00")
	var d kvevents.Decoder
	b, err := d.Decode(batch)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range b.Events {
		fmt.Printf("%s: rank %d %v %v on %s\n", "batch", b.Rank, e.Kind, e.Hashes, e.Medium)
	}
	fmt.Println(b.Unknown, "passed over")
	// Output:
	// batch: rank 0 BlockRemoved [7 18446744073709551615] on GPU
	// 1 passed over
}
