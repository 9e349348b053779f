package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/config"
	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/fetch/outcome"
	"github.com/kvrt/kvrt/server"
)

// startPeer starts a daemon of this configuration in this process.
func startPeer(t *testing.T, name, text string) (c *server.Client, stop func()) {
	t.Helper()
	cfg, err := config.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := wireDaemon(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{stack: s, flags: &serveFlags{}, started: cfg}
	srv, err := d.server()
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err = server.Dial(t.Context(), cfg.Listen.Socket)
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		c.Close()
		if err := d.stop(srv, cfg.DrainTimeout); err != nil {
			t.Error(err)
		}
		s.fleet.Close()
		if st := s.blocks.Store().Stats(); st.Tokens != 0 {
			t.Errorf("%s holds %d leases or reservations", name, st.Tokens)
		}
	}
	t.Cleanup(stop)
	return c, stop
}

// source is what hints call the first of startPeers.
const source = "tcp://127.0.0.1:23280"

// startPeers runs two daemons over a socket, of which the first lets the second read what
// may says.
func startPeers(t *testing.T, may string) (from, to *server.Client, stopFrom func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kvrt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "p")
	text := func(name, peers string) string {
		return fmt.Sprintf("listen: {socket: %s, admin: '127.0.0.1:0'}\ncompile: {cache: 'off'}\nstore: {capacity: 4MiB, block_bytes: [64KiB]}\npeers: %s\n", filepath.Join(dir, name), peers)
	}
	from, stopFrom = startPeer(t, "from", text("from", fmt.Sprintf("{socket: %s, allow: [{uid: %d, %s}]}", socket, os.Geteuid(), may)))
	to, _ = startPeer(t, "to", text("to", fmt.Sprintf("{sockets: [{source: '%s', path: %s}]}", source, socket)))
	return from, to, stopFrom
}

// TestPeers: a block goes from one daemon to another because a hint says so, and what
// does not come has an outcome too.
func TestPeers(t *testing.T) {
	from, to, stopFrom := startPeers(t, "all: true")
	block := func(h uint64) []byte { return bytes.Repeat([]byte{byte(h), 1, 2, 3}, 10_000) }
	for h := uint64(1); h <= 3; h++ {
		if stored, err := from.PutBlock(t.Context(), "a", "m", h, block(h)); !stored || err != nil {
			t.Fatal(stored, err)
		}
	}
	ask := func(request, src, hashes string) (server.Fetched, outcome.Outcome) {
		t.Helper()
		id := hint.Identity{Engine: "vllm", RequestID: request}
		body := fmt.Sprintf(`{"protocol_version":"0.1","message_id":"m-%s","actions":[{"action_id":"a","action_type":"kv.fetch","action_version":"1.0","payload":{"source_control_endpoint":"%s","block_hashes":%s}}]}`, request, src, hashes)
		if _, err := to.Submit(t.Context(), server.Submit{Identity: id, Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		got, err := to.Fetch(t.Context(), server.Fetch{Identity: id, Tenant: "a", Namespace: "m"})
		if err != nil {
			t.Fatal(err)
		}
		out, err := to.Outcomes(t.Context(), server.OutcomesQuery{Identity: id})
		if err != nil {
			t.Fatal(err)
		}
		if len(out) == 0 {
			return got, outcome.Outcome{}
		}
		return got, out[0]
	}
	got, out := ask("r1", source, "[1,2]")
	if got.Fetched != 2 || got.Why != "" || out.State != outcome.Completed || out.MessageID != "m-r1" || out.Fetched != 2 {
		t.Errorf("%+v %+v", got, out)
	}
	for h := uint64(1); h <= 2; h++ {
		if b, err := to.GetBlock(t.Context(), "a", "m", h); err != nil || !bytes.Equal(b, block(h)) {
			t.Errorf("block %d: %d bytes, %v", h, len(b), err)
		}
	}
	if _, err := to.GetBlock(t.Context(), "a", "other", 1); err != server.ErrNoBlock {
		t.Error(err)
	}
	got, out = ask("r2", source, "[3,4]")
	if got.Fetched != 1 || out.State != outcome.Partial || out.Reason != abi.ReasonNotFound {
		t.Errorf("%+v %+v", got, out)
	}
	got, out = ask("r3", "tcp://192.0.2.1:1", "[7]")
	if got.Why == "" || out.Accepted != 0 {
		t.Errorf("a source that is not allowed: %+v %+v", got, out)
	}
	stopFrom()
	got, out = ask("r4", source, "[9]")
	if got.Fetched != 0 || got.Why == "" || out.State != outcome.Failed {
		t.Errorf("%+v %+v", got, out)
	}
}
