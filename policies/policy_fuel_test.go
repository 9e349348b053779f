package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/policies"
)

// TestSize keeps the guests small.
func TestSize(t *testing.T) {
	for _, name := range policies.Guests() {
		if wasm, _ := policies.Module(name); len(wasm) > 29<<10 {
			t.Errorf("%s has %d bytes", name, len(wasm))
		}
	}
}

// sessionContext is a context whose session has a chain of blocks on the selected worker,
// and whose prompt has the same blocks where it is to have any.
func sessionContext(blocks int, prompt bool, about string) string {
	hashes := text(chain(1<<63, blocks))
	list := ""
	if prompt {
		list = `,"block_hashes":` + hashes + `,"hash_kind":"engine","block_size":16`
	}
	return `{"request_id":"r1","selected":{"worker_id":7,"dp_rank":0},"session":{"session_id":"s1"` + about + `}` + list +
		`,"events":[{"type":"stored","session_id":"s1","worker_id":7,"dp_rank":0,"block_hashes":` + hashes + `}]}`
}

// fleetContext is a context with some candidates, which differ at the ends of their ids.
func fleetContext(candidates int, id string) string {
	var list []string
	for i := range candidates {
		list = append(list, fmt.Sprintf(`{"worker_id":"%s%06d","worker_type":"decode","source_control_endpoint":"tcp://h:1","matched_blocks":{"gpu":3}}`, id, candidates-i))
	}
	return `{"request_id":"r1","selected":{"worker_id":"` + id + `-target","worker_type":"decode","matched_blocks":{"gpu":1}},"candidates":[` + strings.Join(list, ",") + `],"block_hashes":[1,2,3,4]}`
}

const (
	isFinal  = `,"session_final":true`
	isTool   = `,"session_final":false,"input_trigger":"tool_result"`
	toolText = `{"request_id":"r1","selected":{"worker_id":7},"tools_declared":true,"session":{"session_id":"s1"` + isTool + `}}`
)

// TestPolicyFuel holds what calls cost, exactly: with its host functions, which cost what
// the ABI's table says. Whoever changes a policy or its SDK changes the figures too.
func TestPolicyFuel(t *testing.T) {
	for _, c := range []struct {
		policy, params, name, context string
		want                          uint64
	}{
		{"retain-session", ``, "no session", `{"request_id":"r1","selected":{"worker_id":7},"session":{"session_id":"s1"}}`, 37},
		{"retain-session", ``, "index off", `{"request_id":"r1","selected":{"worker_id":7},"session":{"session_id":"s1"},"block_hashes":[1],"hash_kind":"engine"}`, 576},
		{"retain-session", ``, "token ranges, 16 blocks", sessionContext(16, true, ""), 3_185},
		{"retain-session", ``, "token ranges, 1,024 blocks", sessionContext(1024, true, ""), 11_564},
		{"retain-session", `{"variant":"request_blocks"}`, "places, 1,024 blocks", sessionContext(1024, true, ""), 11_307},
		{"retain-session", `{"variant":"blocks","hashes":"integer"}`, "integers, 1,024 blocks", sessionContext(1024, false, ""), 4_094},
		{"retain-session", `{"variant":"blocks"}`, "decimals, 1,024 blocks", sessionContext(1024, false, ""), 213_560},
		{"retain-session", `{"variant":"blocks","max_blocks":6144}`, "decimals, 6,144 blocks", sessionContext(6144, false, ""), 1_268_280},
		{"evict-on-final", ``, "not final", sessionContext(16, false, `,"session_final":false`), 31},
		{"evict-on-final", ``, "16 blocks", sessionContext(16, false, isFinal), 7_282},
		{"evict-on-final", ``, "1,024 blocks", sessionContext(1024, false, isFinal), 214_930},
		{"fetch-longest-prefix", ``, "1 candidate", fleetContext(1, "w"), 2_766},
		{"fetch-longest-prefix", ``, "64 candidates", fleetContext(64, "w"), 42_879},
		{"fetch-longest-prefix", ``, "2,048 candidates", fleetContext(2048, "w"), 1_305_375},
		{"retain-on-tool-call", `{"ttl_seconds":60}`, "no tools", strings.Replace(toolText, "true", "false", 1), 59},
		{"retain-on-tool-call", `{"ttl_seconds":60}`, "token ranges", toolText, 3_159},
		{"retain-on-tool-call", `{"ttl_seconds":60,"variant":"blocks"}`, "blocks", toolText, 2_666},
	} {
		t.Run(c.policy+"/"+c.name, func(t *testing.T) {
			f := newFormulator(t, c.policy, c.params)
			f.run(c.context) // a first call may have to make memory for itself
			for range 2 {
				if _, p := f.run(c.context); p.Reason != abi.ReasonNone || p.Fuel != c.want {
					t.Errorf("%d fuel (%s %s), want %d", p.Fuel, p.Reason, p.Detail, c.want)
				}
			}
		})
	}
}
