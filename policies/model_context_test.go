package policies_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
)

// bigger tells whether id a comes after b: texts come after integers.
func bigger(a, b any) bool {
	s, text := a.(string)
	u, other := b.(string)
	if text || other {
		return text && (!other || s > u)
	}
	number := func(x any) *big.Int { n, _ := new(big.Int).SetString(fmt.Sprint(x), 10); return n }
	return number(a).Cmp(number(b)) > 0
}

// fleetWorker makes a worker with anything left out.
func (w *world) fleetWorker(most int) map[string]any {
	id, rank := w.worker()
	out := map[string]any{"worker_id": id}
	if rank != nil {
		out["dp_rank"] = rank
	}
	if w.often() {
		out["worker_type"] = pick(w, "decode", "decode", "decode", "prefill")
	}
	if w.often() {
		out["source_control_endpoint"] = pick(w, "tcp://a:1", "tcp://b:2", "tcp://c:3", "")
	}
	if w.often() {
		tiers := map[string]any{}
		for _, t := range []string{"gpu", "cpu", "disk", "external"} {
			if w.coin() {
				tiers[t] = w.r.IntN(most + 2)
			}
			if w.r.IntN(60) == 0 {
				tiers[t] = math.MaxUint32
			}
		}
		out["matched_blocks"] = tiers
	}
	return out
}

// matched is the longest of a worker's counts, -1 when there is none.
func matched(worker map[string]any, tiers []string) int {
	most := -1
	counts, _ := worker["matched_blocks"].(map[string]any)
	for _, t := range tiers {
		if n, ok := counts[t].(int); ok {
			most = max(most, n)
		}
	}
	return most
}

func TestFetchLongestPrefixModel(t *testing.T) {
	for _, v := range []struct {
		params string
		tiers  []string
		least  int
		skip   bool
	}{
		{`{}`, []string{"gpu", "cpu", "disk"}, 1, true},
		{`{"tiers":["external"],"min_blocks":2,"after_fetch":"add"}`, []string{"external"}, 2, false},
	} {
		t.Run(v.params, func(t *testing.T) {
			t.Parallel()
			f := newFormulator(t, "fetch-longest-prefix", v.params)
			given := 0
			for seed := range uint64(rounds) {
				w := newWorld(seed)
				hashes := []uint64{}
				for range w.r.IntN(6) {
					hashes = append(hashes, pick(w, w.r.Uint64(), 0, math.MaxUint64, 1<<53+1))
				}
				target := w.fleetWorker(2)
				var list []map[string]any
				for range w.r.IntN(7) {
					list = append(list, w.fleetWorker(len(hashes)))
					if w.seldom() {
						list = append(list, list[w.r.IntN(len(list))])
					}
				}
				w.ctx = map[string]any{"request_id": "r1", "selected": target, "candidates": list, "block_hashes": hashes}
				if len(list) == 0 {
					w.ctx["candidates"] = []any{}
				}
				partition := any(nil)
				if w.coin() {
					partition = pick(w, "decode", "prefill")
					w.ctx["partition"] = map[string]any{"worker_type": partition}
				}
				fetched := w.seldom() && v.skip
				hint := `{"protocol_version":"0.1","message_id":"r1","actions":[]}`
				if fetched {
					hint = action(`"x"`, "kv.fetch", `{"block_hashes":[5]}`)
				}
				if fetched || w.seldom() {
					w.ctx[pick(w, "request_hint", "selection_hint")] = raw(hint)
				} else {
					hint = ""
				}
				want := hint
				if payload := fetchModel(target, list, hashes, partition, v.tiers, v.least); payload != "" && !fetched {
					want = action(`"a1"`, "kv.fetch", payload)
					given++
				}
				w.compareExactly(t, f, seed, want)
			}
			if given < rounds/100 || given > rounds*9/10 {
				t.Errorf("%d of %d worlds gave an action", given, rounds)
			}
		})
	}
}

// fetchModel sorts the sources instead of looking for the best.
func fetchModel(target map[string]any, list []map[string]any, hashes []uint64, partition any, tiers []string, least int) string {
	kind := func(w map[string]any) any {
		if t, ok := w["worker_type"]; ok {
			return t
		}
		return partition
	}
	own := matched(target, tiers)
	var sources []map[string]any
	for _, c := range list {
		same := c["worker_id"] == target["worker_id"]
		if same && c["dp_rank"] == target["dp_rank"] {
			own = max(own, matched(c, tiers))
		}
		endpoint, _ := c["source_control_endpoint"].(string)
		self := same && (c["dp_rank"] == target["dp_rank"] || c["dp_rank"] == nil || target["dp_rank"] == nil)
		if !self && endpoint != "" && kind(c) == kind(target) && matched(c, tiers) >= 0 {
			sources = append(sources, c)
		}
	}
	rank := func(w map[string]any) int {
		if n, ok := w["dp_rank"].(int); ok {
			return n
		}
		return -1
	}
	slices.SortStableFunc(sources, func(a, b map[string]any) int {
		switch {
		case matched(a, tiers) != matched(b, tiers):
			return matched(b, tiers) - matched(a, tiers)
		case bigger(a["worker_id"], b["worker_id"]):
			return 1
		case bigger(b["worker_id"], a["worker_id"]):
			return -1
		}
		return rank(a) - rank(b)
	})
	if len(sources) == 0 || own < 0 {
		return ""
	}
	n := matched(sources[0], tiers)
	if n-own < least || n > len(hashes) {
		return ""
	}
	return `{"source_control_endpoint":` + text(sources[0]["source_control_endpoint"]) + `,"block_hashes":` + text(hashes[:n]) + `}`
}

// raw is JSON that is put into a document as it is.
type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// compareExactly is compare for policies whose lists have an order of their own.
func (w *world) compareExactly(t *testing.T, f *formulator, seed uint64, want string) {
	t.Helper()
	body := text(w.ctx)
	got, p := f.run(body)
	if got != "" {
		got = compact(t, got)
	}
	if want != "" {
		want = compact(t, want)
	}
	if got != want || len(p.Dropped) > 0 {
		t.Fatalf("world %d: %s\ngot  %s (%s %s, %v)\nwant %s", seed, body, got, p.Reason, p.Detail, p.Dropped, want)
	}
}

func TestRetainOnToolCallModel(t *testing.T) {
	for _, v := range []struct {
		params   string
		blocks   bool
		ttl      string
		triggers string
		least    int
	}{
		{`{"ttl_seconds":60}`, false, "60.0", "tool_result", 0},
		{`{"variant":"blocks","triggers":["user_message","other"],"min_tokens":50}`, true, "", "user_message other", 50},
	} {
		t.Run(v.params, func(t *testing.T) {
			t.Parallel()
			f := newFormulator(t, "retain-on-tool-call", v.params)
			given := 0
			for seed := range uint64(rounds) {
				w := newWorld(seed)
				id, _ := w.worker()
				about := map[string]any{}
				w.ctx = map[string]any{"request_id": "r1", "selected": map[string]any{"worker_id": id}, "session": about}
				session := pick(w, sessions()...)
				tools, trigger, final, tokens, ttl := "", "", "", -1, v.ttl
				if w.often() {
					about["session_id"] = session
				} else {
					session = "\xff"
				}
				if w.often() {
					tools = fmt.Sprint(w.often())
					w.ctx["tools_declared"] = raw(tools)
				}
				if w.often() {
					trigger = pick(w, "tool_result", "tool_result", "user_message", "other")
					about["input_trigger"] = trigger
				}
				if w.often() {
					final = fmt.Sprint(w.seldom())
					about["session_final"] = raw(final)
				}
				if w.often() {
					tokens = w.r.IntN(100)
					w.ctx["prompt_tokens"] = tokens
				}
				hint, actions := "", ""
				if w.coin() {
					asked := pick(w, "1", "0.5", "2592000", "2592000.5", "0", "-1", `"1"`, "null")
					retain := `{"ttl_seconds":` + asked + `}`
					if w.coin() {
						retain = `{"directives":[{"duration":` + asked + `},{"duration":7}]}`
					}
					if v.ttl == "" && slices.Contains([]string{"1", "0.5", "2592000"}, asked) {
						ttl = asked
						if !strings.Contains(asked, ".") {
							ttl += ".0"
						}
					}
					actions = `{"action_id":"x","action_type":"kv.retain","action_version":"1.0","payload":` + retain + `}`
					hint = `{"protocol_version":"0.1","message_id":"r1","actions":[` + actions + `]}`
					w.ctx["request_hint"] = raw(hint)
				}
				want := hint
				enough := v.least == 0 || tokens >= v.least
				if session != "\xff" && tools == "true" && trigger != "" && strings.Contains(v.triggers, trigger) && final == "false" && enough && ttl != "" {
					payload := `{"scope":` + text(session) + `,"directives":[{"start":0,"end":null,"priority":50,"duration":` + ttl + `}]}`
					if v.blocks {
						payload = `{"execute_at":"request_completion","include_current_request":true,"block_hashes":[],"priority":50,"ttl_seconds":` + ttl + `}`
					}
					if actions != "" {
						actions += ","
					}
					own := action(`"retain-on-tool-call-0"`, "kv.retain", payload)
					from := strings.Index(own, `{"action_id"`)
					want = own[:from] + actions + own[from:]
					given++
				}
				if !v.blocks && strings.Contains(hint, "directives") {
					continue // its scope is another one, and the host drops what comes after
				}
				w.compareExactly(t, f, seed, want)
			}
			if given < rounds/100 || given > rounds*9/10 {
				t.Errorf("%d of %d worlds gave an action", given, rounds)
			}
		})
	}
}

// TestCovered: a prompt that differs from the lineage in one block, whichever it is and
// in whichever bit, is covered up to there.
func TestCovered(t *testing.T) {
	const blocks = 50
	f := newFormulator(t, "retain-session", `{"variant":"request_blocks"}`)
	path := chain(1<<63, blocks)
	for at := range blocks {
		prompt := chain(1<<63, blocks)
		prompt[at] ^= 1 << (at * 7 % 64)
		envelope, p := f.run(`{"request_id":"r1","selected":{"worker_id":7},"session":{"session_id":"s1"},"hash_kind":"engine","block_hashes":` + text(prompt) +
			`,"events":[{"type":"stored","session_id":"s1","worker_id":7,"block_hashes":` + text(path) + `}]}`)
		want := fmt.Sprintf(`"current_request_block_count":%d}`, at)
		if p.Reason != abi.ReasonNone || at > 0 && !strings.Contains(envelope, want) || at == 0 && envelope != "" {
			t.Errorf("block %d: %s %s, want %s", at, p.Reason, envelope, want)
		}
	}
}
