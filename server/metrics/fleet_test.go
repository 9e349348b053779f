package metrics

import (
	"testing"

	"github.com/kvrt/kvrt/fleet"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch"
	"github.com/kvrt/kvrt/hosts/session"
	"github.com/kvrt/kvrt/hosts/worker"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// TestFleet: workers, feeds by worker and rank, lineage by namespace.
func TestFleet(t *testing.T) {
	f := fleet.New(fleet.Config{})
	t.Cleanup(f.Close)
	rank := uint32(3)
	for _, w := range []worker.Worker{
		{ID: hint.UintWorker(7), Namespace: "n", Ranks: []worker.Rank{{Rank: &rank, Events: "ipc://" + t.TempDir() + "/e"}}},
		{ID: hint.NamedWorker("7")},
	} {
		if err := f.Put(w); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Sessions().Index("n").Apply(&session.Event{Op: session.OpStored, Session: "s", Hashes: []uint64{1, 2}, Worker: hint.Worker{ID: hint.UintWorker(7)}}); err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.New(runtime.Config{Engine: wazero.New(wazero.Config{})})
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, rt: rt, store: fetch.New(fetch.Config{}), fleet: f}
	g.serve()
	for labels, want := range map[[4]string]float64{
		{"kvrt_workers"}: 2, {"kvrt_feeds", "state=waiting"}: 1, {"kvrt_feeds", "state=live"}: 0, {"kvrt_feeds_not_shown"}: 0,
		{"kvrt_feed_connected", "worker=7", "dp_rank=3"}:                    0,
		{"kvrt_feed_events_total", "worker=7", "dp_rank=3", "event=stored"}: 0,
		{"kvrt_lineage_sessions", "namespace=n"}:                            1,
		{"kvrt_lineage_nodes", "namespace=n"}:                               2,
		{"kvrt_lineage_events_total", "namespace=n"}:                        1,
		{"kvrt_router_events_total", "result=left_out"}:                     0,
	} {
		var with []string
		for _, l := range labels[1:] {
			if l != "" {
				with = append(with, l)
			}
		}
		if got := g.value(labels[0], with...); got != want {
			t.Errorf("%s: %v, want %v", labels, got, want)
		}
	}
	g.lint()
}
