package tck_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
)

// TestSoak: calls of a good guest are counted and its fuel is told; a guest that does not
// answer equal inputs alike is found.
func TestSoak(t *testing.T) {
	fetch, _ := policies.Module("kv-fetch")
	wrap := func(n int, typ, payload string) []byte {
		action := `{"action_type":"` + typ + `","action_version":"1.0","payload":` + payload + `}`
		return []byte(`{"protocol_version":"0.1","message_id":"m","actions":[` + strings.Repeat(action+",", n-1) + action + `]}`)
	}
	spec := runtime.GuestSpec{Name: "g", Module: fetch, Grants: []string{"kvrt_fetch", "kvrt_log"}, Limits: runtime.Limits{Instances: 1}}
	s, err := kit().Soak(context.Background(), spec, [][]byte{wrap(2, "kv.fetch", `{"block_hashes":[1]}`), wrap(2, "kv.fetch", `{}`)}, 500)
	if err != nil {
		t.Fatal(err)
	}
	if s.Calls != 500 || s.Early == 0 || s.Early != s.Late || s.LeastFuel[0] == 0 || s.LeastFuel[0] != s.MostFuel[0] || s.Elapsed <= 0 || s.Idle.Calls != 0 {
		t.Errorf("%+v", s)
	}
	ticks := int64(0)
	moving := kit()
	moving.Hosts = []runtime.HostModule{ticking{&ticks}}
	if _, err := moving.Soak(context.Background(), faultyGuest(t, "days", faultyManifest), [][]byte{wrap(1, "demo.echo", `{}`)}, 500); err == nil || !strings.Contains(err.Error(), "body 0, action 0: ") {
		t.Errorf("a guest that answers by the clock: %v", err)
	}
}
