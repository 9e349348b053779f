package server

import (
	"slices"
	"testing"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/store"
)

// TestDescribe: what an engine says of a request reaches whoever is to know.
func TestDescribe(t *testing.T) {
	requests := store.NewRequests(store.RequestsConfig{MaxHashes: 4})
	g := newRig(t, func(c *rigConfig) { c.Requests = requests })
	c := g.dial()
	id := hint.Identity{Engine: "e", RequestID: "r", DPRank: 1}
	d := Description{Tenant: "t", Namespace: "m", BlockSize: 16, Hashes: []uint64{1, 1<<64 - 1}}
	if kept, err := c.Describe(t.Context(), id, d); err != nil || !kept {
		t.Fatal(kept, err)
	}
	req, ok := requests.Of(id)
	if !ok || req.Namespace != store.Namespace("t", "m") || req.BlockSize != 16 || !slices.Equal(req.Hashes, d.Hashes) {
		t.Errorf("%+v, %v", req, ok)
	}
	if _, ok := requests.Of(hint.Identity{Engine: "e", RequestID: "r"}); ok {
		t.Error("another rank's request is described too")
	}
	for _, v := range []struct {
		id hint.Identity
		n  int
	}{{hint.Identity{}, 1}, {id, 5}} {
		d.Hashes = make([]uint64, v.n)
		if kept, err := c.Describe(t.Context(), v.id, d); err != nil || kept {
			t.Errorf("%v with %d hashes: %v, %v", v.id, v.n, kept, err)
		}
	}
}

func TestDescribeIsRefused(t *testing.T) {
	g := newRig(t)
	r := g.raw()
	r.send(appendRequest(nil, &request{op: opDescribe, seq: 1}))
	r.wantError(opDescribe, CodeUnavailable, "no block store")
	g = newRig(t, func(c *rigConfig) { c.Requests = store.NewRequests(store.RequestsConfig{}) })
	r = g.raw()
	for _, body := range [][]byte{make([]byte, 7), make([]byte, 9)} {
		r.send(appendRequest(nil, &request{op: opDescribe, seq: 1, body: body}))
		r.wantError(opDescribe, CodeBadRequest, "the block hashes are bytes, 8 for each")
	}
	r.send(appendRequest(nil, &request{op: opDescribe, flags: flagOneway, seq: 1, identity: hint.Identity{RequestID: "r"}}))
	r.send(appendRequest(nil, &request{op: opPing, seq: 2}))
	if p := r.recv(); p.op != opPing {
		t.Errorf("a one-way describe was answered: %+v", p)
	}
}
