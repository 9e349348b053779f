package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

// stored is an event of one chain of the session s1 on worker 7.
func stored(parent string, hashes []uint64) string {
	return `{"type":"stored","session_id":"s1","worker_id":7` + parent + `,"block_hashes":` + text(hashes) + `}`
}

// A context may be of any size, and the lineage too. A policy answers, does nothing, or
// says that it is too much; it does not trap, which would cost the instance.
func TestPolicyBounds(t *testing.T) {
	const s1 = `{"request_id":"r1","selected":{"worker_id":7},"session":{"session_id":"s1","session_final":true},"hash_kind":"engine","block_size":16`
	context := func(prompt int, events ...string) string {
		list := ""
		if prompt > 0 {
			list = `,"block_hashes":` + text(chain(1, prompt))
		}
		return s1 + list + `,"events":[` + strings.Join(events, ",") + `]}`
	}
	// A comb: each of 64 paths leaves the one before it a block further down.
	comb := []string{stored("", chain(1, 200))}
	for i := range 63 {
		comb = append(comb, stored(fmt.Sprintf(`,"parent_block_hash":%d`, 1+2*i), chain(uint64(1000*(i+1)), 200)))
	}
	long := stored("", chain(1, 80_000))
	many := manyKeys(20_000) // a frame of 1.3 MB
	hinted := func(hint string) string {
		return strings.Replace(fleetContext(1, "w"), `"request_id"`, `"request_hint":`+hint+`,"request_id"`, 1)
	}
	called := func(hint string) string {
		return strings.Replace(toolText, `"request_id"`, `"request_hint":`+hint+`,"request_id"`, 1)
	}
	retain := `"action_type":"kv.retain","payload":{"ttl_seconds":5}`
	for _, c := range []struct {
		policy, params, name, context string
		reason                        abi.Reason
		want                          string // part of the envelope, empty for none
	}{
		{"retain-session", ``, "a comb of 64 paths", context(200, comb...), 0, `"end":3200`},
		{"retain-session", `{"variant":"blocks","max_blocks":6144}`, "a comb of 64 paths", context(0, comb...), 0, `"1","2"`},
		{"retain-session", `{"variant":"blocks","anchored":true}`, "a comb of 64 paths, anchored", context(1, comb...), 0, `"1","2"`},
		{"retain-session", ``, "80,000 blocks", context(80_000, long), 0, `"end":1048576`},
		{"retain-session", `{"variant":"blocks"}`, "80,000 blocks", context(0, long), 0, `"4096"],`},
		{"evict-on-final", ``, "a comb of 64 paths", context(0, comb...), 0, `"63199"`},
		{"evict-on-final", ``, "80,000 blocks", context(0, long), 0, `["75905",`},
		{"fetch-longest-prefix", ``, "2,048 candidates", fleetContext(2048, "w"), 0, `"kv.fetch"`},
		{"fetch-longest-prefix", ``, "2,049 candidates", fleetContext(2049, "w"), abi.ReasonLimitExceeded, ""},
		{"fetch-longest-prefix", ``, "candidates with long ids", fleetContext(120, strings.Repeat("w", 500)), 0, `"kv.fetch"`},
		{"fetch-longest-prefix", ``, "too many candidates with long ids", fleetContext(2048, strings.Repeat("w", 500)), abi.ReasonLimitExceeded, ""},
		{"fetch-longest-prefix", ``, "a hint of 20,000 keys", hinted(`{` + many + `"actions":[]}`), 0, `"actions":[]`},
		{"fetch-longest-prefix", ``, "an action of 20,000 keys", hinted(`{"actions":[{` + many + `"action_type":"x","payload":{}}]}`), 0, `"x"`},
		{"fetch-longest-prefix", ``, "1,000 actions", hinted(`{"actions":[` + strings.Repeat(`{"action_type":"x","payload":{}},`, 999) + `{"action_type":"x","payload":{}}]}`), 0, `"kv.fetch"`},
		{"retain-on-tool-call", `{}`, "a hint of 5,000 keys", called(`{` + manyKeys(5000) + `"actions":[{` + retain + `}]}`), 0, `"actions":[{`},
		{"retain-on-tool-call", `{}`, "a payload of 5,000 keys", called(`{"actions":[{"action_type":"kv.retain","payload":{` + manyKeys(5000) + `"ttl_seconds":5}}]}`), 0, `"actions":[{`},
		{"retain-on-tool-call", `{}`, "64 actions of 64 keys", called(`{"actions":[` + strings.Repeat(`{`+manyKeys(62)+`"action_type":"x","payload":{}},`, 64) + `{` + retain + `}]}`), 0, `"actions":[{`},
	} {
		t.Run(c.policy+"/"+c.name, func(t *testing.T) {
			f := newFormulator(t, c.policy, c.params)
			for range 2 {
				envelope, p := f.run(c.context)
				if p.Reason != c.reason || (c.want == "") != (envelope == "") || !strings.Contains(envelope, c.want) {
					t.Errorf("%s %s, %d fuel: %.300s, want %s", p.Reason, p.Detail, p.Fuel, envelope, c.want)
				}
				if envelope, p := f.run(sessionContext(1, true, isTool)); p.Reason != abi.ReasonNone && p.Reason != abi.ReasonNotFound {
					t.Errorf("after that: %s %s %s", p.Reason, p.Detail, envelope)
				}
			}
		})
	}
}

// A lineage that the guest has no memory for is told from none.
func TestPolicyLineageTooLong(t *testing.T) {
	for _, policy := range []string{"retain-session", "evict-on-final"} {
		params := ""
		if policy == "retain-session" {
			params = `{"variant":"blocks"}`
		}
		f := newFormulator(t, policy, params, runtime.DefaultMemory)
		f.keep = true
		const n = 35_000
		for i, want := range []abi.Reason{abi.ReasonNone, abi.ReasonNone, abi.ReasonLimitExceeded, abi.ReasonLimitExceeded} {
			parent := ""
			if i > 0 {
				parent = fmt.Sprintf(`,"parent_block_hash":%d`, i*n)
			}
			_, p := f.run(`{"request_id":"r1","selected":{"worker_id":7},"session":{"session_id":"s1","session_final":true},"events":[` + stored(parent, chain(uint64(i*n+1), n)) + `]}`)
			if p.Reason != want {
				t.Errorf("%s, %d blocks: %s %s, %d fuel, want %q", policy, (i+1)*n, p.Reason, p.Detail, p.Fuel, want)
			}
		}
	}
}

// manyKeys begins a map.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":null,`, i)
	}
	return b.String()
}
