package policies_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The models are the policies as their READMEs say them, in plain Go over what a random
// context was made of. rounds is how many contexts each is held against.
const rounds = 3000

// world is a context with the lineage that was there before it.
type world struct {
	r      *rand.Rand
	blocks map[string]uint64 // by the path that ends in it
	used   map[uint64]bool
	own    map[string][][]uint64 // paths by session, worker and rank
	events []any
	ctx    map[string]any
}

func newWorld(seed uint64) *world {
	return &world{r: rand.New(rand.NewPCG(seed, 7)), blocks: map[string]uint64{}, used: map[uint64]bool{}, own: map[string][][]uint64{}, ctx: map[string]any{}}
}

func (w *world) often() bool  { return w.r.IntN(8) > 0 }
func (w *world) coin() bool   { return w.r.IntN(2) == 0 }
func (w *world) seldom() bool { return w.r.IntN(8) == 0 }

func pick[T any](w *world, list ...T) T { return list[w.r.IntN(len(list))] }

// path makes a chain of a small tree of blocks: paths meet at the beginning often.
func (w *world) path() []uint64 {
	var out []uint64
	at := ""
	for range 1 + w.r.IntN(6) {
		at += string(rune('a' + w.r.IntN(2)))
		h, ok := w.blocks[at]
		for !ok {
			h = pick(w, w.r.Uint64(), w.r.Uint64N(300), math.MaxUint64-w.r.Uint64N(3), 0, 1<<53+w.r.Uint64N(9))
			ok = !w.used[h]
		}
		w.blocks[at], w.used[h] = h, true
		out = append(out, h)
	}
	return out
}

func (w *world) worker() (id any, rank any) {
	id = pick[any](w, 7, 7, 7, 8, -7, "7", "w", uint64(math.MaxUint64), "é\x00\"")
	if w.seldom() {
		return id, w.r.IntN(2)
	}
	return id, nil
}

func place(session string, id, rank any) string { return text([]any{session, id, rank}) }

func sessions() []string { return []string{"s1", "s2", "会話\"\\\n", "-"} }

// store lets some sessions have paths on some workers. A path that is the beginning of
// another one is part of it.
func (w *world) store() {
	for range w.r.IntN(8) {
		s, p := pick(w, sessions()...), w.path()
		id, rank := w.worker()
		e := map[string]any{"type": "stored", "session_id": s, "worker_id": id, "block_hashes": p}
		if rank != nil {
			e["dp_rank"] = rank
		}
		w.events = append(w.events, e)
		key := place(s, id, rank)
		if slices.ContainsFunc(w.own[key], func(q []uint64) bool { return common(p, q) == len(p) }) {
			continue
		}
		w.own[key] = append(slices.DeleteFunc(w.own[key], func(q []uint64) bool { return common(p, q) == len(q) }), p)
	}
	if len(w.events) > 0 {
		w.ctx["events"] = w.events
	}
}

func common(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// lineage adds what policies about sessions look at, and tells whose lineage they see.
func (w *world) lineage() (session, key string, known bool) {
	w.store()
	id, rank := w.worker()
	session = pick(w, append(sessions(), "", "nobody")...)
	if len(w.events) > 0 && w.often() {
		e := pick(w, w.events...).(map[string]any)
		id, rank, session = e["worker_id"], e["dp_rank"], e["session_id"].(string)
	}
	w.ctx["request_id"] = "r1"
	selected := map[string]any{"worker_id": id}
	if rank != nil {
		selected["dp_rank"] = rank
	}
	w.ctx["selected"] = selected
	about := map[string]any{"session_id": session}
	w.ctx["session"] = about
	if w.often() {
		about["session_final"] = w.often()
	}
	if w.seldom() {
		about["parent_session_id"] = pick(w, "", "s0")
	}
	return session, place(session, id, rank), len(w.events) > 0
}

// action spells an envelope of one action.
func action(id, typ, payload string) string {
	return `{"protocol_version":"0.1","message_id":"r1","actions":[{"action_id":` + id + `,"action_type":"` + typ + `","action_version":"1.0","payload":` + payload + `}]}`
}

func (w *world) id(session string) string {
	return text(fmt.Sprintf("%s-%v-r1", session, w.ctx["selected"].(map[string]any)["worker_id"]))
}

// compare runs the policy and holds its envelope to want. Where blocks come in an order
// that is the index's, they must be the blocks of want, parents first.
func (w *world) compare(t *testing.T, f *formulator, seed uint64, want string) (given bool) {
	t.Helper()
	body := text(w.ctx)
	got, p := f.run(body)
	if got != "" {
		got = compact(t, got)
	}
	if want != "" {
		want = compact(t, want)
	}
	if w.sorted(got) != w.sorted(want) || len(p.Dropped) > 0 || !w.ordered(got) {
		t.Fatalf("world %d: %s\ngot  %s (%s %s, %v)\nwant %s", seed, body, got, p.Reason, p.Detail, p.Dropped, want)
	}
	return got != ""
}

// compact brings strings into one spelling.
func compact(t *testing.T, envelope string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(envelope))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, envelope)
	}
	return text(v)
}

// listed finds the decimal hashes of an envelope.
func listed(envelope string) (from, to int, hashes []string) {
	const key = `"block_hashes":[`
	if from = strings.Index(envelope, key); from < 0 {
		return 0, 0, nil
	}
	from += len(key)
	to = from + strings.IndexByte(envelope[from:], ']')
	if to == from {
		return from, to, nil
	}
	return from, to, strings.Split(envelope[from:to], ",")
}

func (w *world) sorted(envelope string) string {
	from, to, hashes := listed(envelope)
	slices.Sort(hashes)
	return envelope[:from] + strings.Join(hashes, ",") + envelope[to:]
}

// ordered tells whether each block comes after those before it on its path that are
// listed at all.
func (w *world) ordered(envelope string) bool {
	_, _, hashes := listed(envelope)
	at := map[uint64]int{}
	for i, h := range hashes {
		n, err := strconv.ParseUint(strings.Trim(h, `"`), 10, 64)
		if err != nil {
			return false
		}
		at[n] = i
	}
	for path, h := range w.blocks {
		i, ok := at[h]
		parent, has := at[w.blocks[path[:len(path)-1]]]
		if ok && len(path) > 1 && has && parent > i {
			return false
		}
	}
	return len(at) == len(hashes)
}

func decimals(hashes []uint64) string {
	var out []string
	for _, h := range hashes {
		out = append(out, strconv.Quote(strconv.FormatUint(h, 10)))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// distinct are the blocks of paths, each once.
func distinct(paths [][]uint64) []uint64 {
	var out []uint64
	for _, p := range paths {
		for _, h := range p {
			if !slices.Contains(out, h) {
				out = append(out, h)
			}
		}
	}
	return out
}

func TestRetainSessionModel(t *testing.T) {
	type variant struct {
		params            string
		variant           string
		anchored, current bool
		least             int
	}
	for _, v := range []variant{
		{`{}`, "token_ranges", false, false, 1},
		{`{"min_blocks":2,"include_current_request":true,"current_priority":3,"anchored":true}`, "token_ranges", true, true, 2},
		{`{"variant":"blocks"}`, "blocks", false, false, 1},
		{`{"variant":"blocks","anchored":true,"include_current_request":true,"min_blocks":3}`, "blocks", true, true, 3},
		{`{"variant":"request_blocks"}`, "request_blocks", false, false, 1},
	} {
		t.Run(v.params, func(t *testing.T) {
			t.Parallel()
			f := newFormulator(t, "retain-session", v.params)
			given := 0
			for seed := range uint64(rounds) {
				w := newWorld(seed)
				session, key, on := w.lineage()
				prompt := w.path()
				switch w.r.IntN(8) {
				case 0:
					prompt = append(prompt, w.r.Uint64())
				case 1:
					prompt[0]++
				case 2:
					prompt = prompt[:0]
				}
				has, size := w.often(), pick[any](w, 16, 16, 16, nil, 0, math.MaxUint32)
				if has {
					w.ctx["block_hashes"] = prompt
				}
				kind := w.often()
				if kind {
					w.ctx["hash_kind"] = pick(w, "engine", "sequence", "local")
				}
				if size != nil {
					w.ctx["block_size"] = size
				}
				tokens := -1
				if w.seldom() {
					tokens = w.r.IntN(100)
					w.ctx["prompt_tokens"] = tokens
				}
				paths := w.own[key]
				if v.anchored && has && len(prompt) > 0 {
					var from [][]uint64
					for _, p := range paths {
						if i := slices.Index(p, prompt[0]); i >= 0 {
							from = append(from, p[i:])
						}
					}
					paths = from
				}
				n, blocks := 0, distinct(paths)
				for _, p := range paths {
					n = max(n, common(p, prompt))
				}
				placed := v.variant != "blocks" || v.anchored
				want := ""
				switch {
				case !on, placed && (!has || len(prompt) == 0 || !kind):
				case v.variant == "token_ranges":
					s, _ := size.(int)
					if end := n * s; n >= v.least && end > 0 && (tokens < 0 || end <= tokens) {
						more := ""
						if v.current {
							more = fmt.Sprintf(`,{"start":%d,"end":null,"priority":3,"duration":300.0}`, end)
						}
						want = fmt.Sprintf(`{"scope":%s,"directives":[{"start":0,"end":%d,"priority":50,"duration":300.0}%s]}`, text(session), end, more)
					}
				case v.variant == "blocks" && len(blocks) >= v.least:
					want = fmt.Sprintf(`{"execute_at":"request_completion","include_current_request":%v,"block_hashes":%s,"priority":50,"ttl_seconds":300.0}`, v.current, decimals(blocks))
				case v.variant == "request_blocks" && n >= v.least:
					want = fmt.Sprintf(`{"execute_at":"request_completion","include_current_request":false,"block_hashes":[],"priority":50,"ttl_seconds":300.0,"current_request_block_start":0,"current_request_block_count":%d}`, n)
				}
				if want != "" {
					want = action(w.id(session), "kv.retain", want)
				}
				if w.compare(t, f, seed, want) {
					given++
				}
			}
			if given < rounds/100 || given > rounds*9/10 {
				t.Errorf("%d of %d worlds gave an action: they do not try both", given, rounds)
			}
		})
	}
}

func TestEvictOnFinalModel(t *testing.T) {
	t.Parallel()
	f := newFormulator(t, "evict-on-final", "")
	given := 0
	for seed := range uint64(rounds) {
		w := newWorld(seed)
		session, key, on := w.lineage()
		about := w.ctx["session"].(map[string]any)
		_, parent := about["parent_session_id"]
		var others [][]uint64
		for k, paths := range w.own {
			if k != key && rest(k) == rest(key) {
				others = append(others, paths...)
			}
		}
		shared := distinct(others)
		alone := slices.DeleteFunc(distinct(w.own[key]), func(h uint64) bool { return slices.Contains(shared, h) })
		want := ""
		if on && about["session_final"] == true && !parent && len(alone) > 0 {
			want = action(w.id(session), "kv.evict", `{"execute_at":"request_completion","include_current_request":false,"block_hashes":`+decimals(alone)+`}`)
		}
		if w.compare(t, f, seed, want) {
			given++
		}
	}
	if given < rounds/100 {
		t.Errorf("%d of %d worlds gave an action", given, rounds)
	}
}

// rest is the worker and rank of a place.
func rest(key string) string {
	var parts []json.RawMessage
	if json.Unmarshal([]byte(key), &parts) != nil {
		return ""
	}
	return string(parts[1]) + " " + string(parts[2])
}
