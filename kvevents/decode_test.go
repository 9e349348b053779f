package kvevents

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// show is a batch in one line.
func show(b *Batch) string {
	var s strings.Builder
	fmt.Fprintf(&s, "rank %d", b.Rank)
	for _, e := range b.Events {
		fmt.Fprintf(&s, "; %v %v", e.Kind, e.Hashes)
		if e.HasParent {
			fmt.Fprintf(&s, " after %d", e.Parent)
		}
		if e.Kind == BlockStored {
			fmt.Fprintf(&s, " %dx%d", e.BlockSize, e.Tokens)
		}
		if e.Eagle {
			s.WriteString(" eagle")
		}
		for name, text := range map[string][]byte{"medium": e.Medium} {
			if text != nil {
				fmt.Fprintf(&s, " %s=%s", name, text)
			}
		}
		if e.Group != NoGroup {
			fmt.Fprintf(&s, " group %d", e.Group)
		}
		if e.SpecKind != nil || e.SlidingWindow > 0 {
			fmt.Fprintf(&s, " %s/%d", e.SpecKind, e.SlidingWindow)
		}
		if e.Locality != nil {
			fmt.Fprintf(&s, " at %s", e.Locality)
		}
		for _, text := range [][]byte{e.SessionID, e.LoraName, e.CacheSalt} {
			if text != nil {
				fmt.Fprintf(&s, " %q", text)
			}
		}
	}
	if b.Unknown+b.Malformed > 0 || b.Lossy {
		fmt.Fprintf(&s, "; unknown %d malformed %d lossy %v", b.Unknown, b.Malformed, b.Lossy)
	}
	return s.String()
}

// goldens are batches whose bytes the public formats give.
var goldens = []struct{ name, hex, want string }{
	{"map event in an array batch, hash 2^64-1",
		"93cb3ff80000000000009189a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391cfffffffffffffffffb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473920102aa626c6f636b5f73697a6502a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0a967726f75705f6964780000",
		"rank 0; BlockStored [18446744073709551615] 2x2 medium=GPU group 0"},
	{"removed, positional, rank 0", "93cb3ff80000000000009193ac426c6f636b52656d6f7665649107a347505500",
		"rank 0; BlockRemoved [7] medium=GPU"},
	{"signed -1, no rank", "92cb3ff80000000000009192ac426c6f636b52656d6f76656491ff",
		"rank -1; BlockRemoved [18446744073709551615]"},
	{"rank nil", "93 00 90 c0", "rank -1"},
	{"more elements than are known", "95 00 90 03 c0 a178", "rank 3"},
	{"a map without a rank", "82 a2 7473 01 a6 6576656e7473 90", "rank -1"},
	{"a map, other keys, last one counts", "84 a1 78 8101c0 a6 6576656e7473 9190 a2 7473 01 a6 6576656e7473 90", "rank -1"},
	{"a tag that is not known", "92 00 91 92 a3 4e6577 05", "rank -1; unknown 1 malformed 0 lossy false"},
	{"a map without a tag, one with a number for it, neither map nor list",
		"92 00 94 80 81 a4 74797065 05 c0 90", "rank -1; unknown 4 malformed 0 lossy false"},
	{"between two that are", "92 00 93 91 b0 416c6c426c6f636b73436c6561726564 81 c0 c0 92 ac 426c6f636b52656d6f766564 91 05",
		"rank -1; AllBlocksCleared []; BlockRemoved [5]; unknown 1 malformed 0 lossy false"},
	{"removed without hashes", "92 00 92 91 ac 426c6f636b52656d6f766564 92 ac 426c6f636b52656d6f766564 91 05",
		"rank -1; BlockRemoved [5]; unknown 0 malformed 1 lossy true"},
	{"stored without hashes", "92 00 91 91 ab 426c6f636b53746f726564", "rank -1; unknown 0 malformed 1 lossy false"},
	{"a hash that is a float", "92 00 91 92 ac 426c6f636b52656d6f766564 91 ca00000000", "rank -1; unknown 0 malformed 1 lossy true"},
	{"a medium that is a number", "92 00 91 93 ac 426c6f636b52656d6f766564 91 05 06", "rank -1; unknown 0 malformed 1 lossy true"},
	{"every width of an integer", "92 00 91 92 ac 426c6f636b52656d6f766564 9a 01 ff ccff cdffff ceffffffff cf8000000000000000 d0ff d1ffff d2ffffffff d38000000000000000",
		"rank -1; BlockRemoved [1 18446744073709551615 255 65535 4294967295 9223372036854775808 18446744073709551615 18446744073709551615 18446744073709551615 9223372036854775808]"},
	{"hashes of bytes: the last eight count", "92 00 91 92 ac 426c6f636b52656d6f766564 94 c4 09 ff0000000000000102 c4 02 0103 a3 000104 c4 08 ffffffffffffffff",
		"rank -1; BlockRemoved [258 259 260 18446744073709551615]"},
	{"hashes of no bytes", "92 00 91 92 ac 426c6f636b52656d6f766564 91 c400", "rank -1; unknown 0 malformed 1 lossy true"},
	{"infos before the group", "92 00 91 9b ab 426c6f636b53746f726564 9105 c0 90 10 c0 c0 c0 c0 91c0 02",
		"rank -1; BlockStored [5] 16x0 group 2"},
	{"no infos before the group", "92 00 91 9b ab 426c6f636b53746f726564 9105 c0 90 10 c0 c0 c0 c0 c0 02",
		"rank -1; BlockStored [5] 16x0 group 2"},
	{"group -1 is none, -2 is nothing", "92 00 92 94 ac 426c6f636b52656d6f766564 9105 c0 ff 94 ac 426c6f636b52656d6f766564 9105 c0 fe",
		"rank -1; BlockRemoved [5]; unknown 0 malformed 1 lossy true"},
	{"no group, a kind", "92 00 91 9b ab 426c6f636b53746f726564 9105 c0 90 10 c0 c0 c0 c0 c0 a3 6d6c61",
		"rank -1; BlockStored [5] 16x0 mla/0"},
}

func TestGoldens(t *testing.T) {
	var d Decoder
	for _, g := range goldens {
		b, err := d.Decode(unhex(t, g.hex))
		if err != nil {
			t.Errorf("%s: %v", g.name, err)
		} else if got := show(b); got != g.want {
			t.Errorf("%s:\n got %s\nwant %s", g.name, got, g.want)
		}
	}
}

// TestEncoders reads what msgspec writes of the public types.
func TestEncoders(t *testing.T) {
	sha := strings.Repeat("ab", 24) + "f000000000000001"
	full := m{"type": "stored", "block_hashes": []any{uint64(15760518052499183552), -5, m{"hex": sha}}, "parent_block_hash": m{"hex": sha},
		"token_ids": []int{1, 200, 70000}, "block_size": 16, "medium": "CPU", "lora_name": "l", "extra_keys": []any{[]any{"k", 1}, nil},
		"group_idx": 1, "kv_cache_spec_kind": "sliding_window", "kv_cache_spec_sliding_window": 128, "locality": "LOCAL", "ownership": "x", "session_id": "s"}
	const all = "BlockStored [15760518052499183552 18446744073709551611 17293822569102704641] after 17293822569102704641 16x3 " +
		`medium=CPU group 1 sliding_window/128 at LOCAL "s" "l"`
	few := m{"type": "stored", "block_hashes": []any{1}, "token_ids": [][]int{{1, 2}, {2, 3}}, "block_size": 4}
	gone := m{"type": "removed", "block_hashes": []any{1, 2}, "medium": "GPU", "group_idx": 1}
	with := func(e m, shape string) m {
		c := m{"shape": shape}
		for k, v := range e {
			c[k] = v
		}
		return c
	}
	tests := []struct {
		batch m
		want  string
	}{
		{m{"shape": "map", "batch": "map", "events": []m{full, gone}, "data_parallel_rank": 3}, "rank 3; " + all + "; BlockRemoved [1 2] medium=GPU group 1"},
		{m{"shape": "map", "events": []m{full}}, "rank -1; " + all},
		{m{"shape": "array", "events": []m{full, gone}, "data_parallel_rank": 0}, "rank 0; " + all + "; BlockRemoved [1 2] medium=GPU group 1"},
		{m{"shape": "array", "events": []m{with(few, "map"), few, {"type": "cleared"}, with(m{"type": "cleared"}, "map")}},
			"rank -1; BlockStored [1] 4x2 eagle; BlockStored [1] 4x2 eagle; AllBlocksCleared []; AllBlocksCleared []"},
		{m{"shape": "old", "events": []m{few, {"type": "removed", "block_hashes": []int{-1}}}}, "rank -1; BlockStored [1] 4x2 eagle; BlockRemoved [18446744073709551615]"},
		{m{"shape": "map", "events": []m{{"type": "migrated", "block_hashes": []int{1}, "target": "x"}, gone}},
			"rank -1; BlockRemoved [1 2] medium=GPU group 1; unknown 1 malformed 0 lossy false"},
	}
	var batches []m
	for _, tt := range tests {
		batches = append(batches, tt.batch)
	}
	p := newPublisher(t)
	var d Decoder
	for i, h := range p.Do("encode", m{"batches": batches})["hex"].([]any) {
		b, err := d.Decode(unhex(t, h.(string)))
		if err != nil {
			t.Errorf("%v: %v", tests[i].batch, err)
		} else if got := show(b); got != tests[i].want {
			t.Errorf("%s:\n got %s\nwant %s", h, got, tests[i].want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	tests := []struct{ hex, want string }{
		{"", msgEnd},
		{"c1", msgReserved},
		{"00", msgBatch},
		{"91 00", msgBatch},
		{"92 00 00", msgEvents},
		{"92 a0 90", msgTime},
		{"93 00 90 ff", msgRank},
		{"93 00 90 ce80000000", msgRank},
		{"81 a2 7473 00", msgBatch},
		{"82 00 00 00 00", msgKey},
		{"92 00 90 00", msgAfter},
		{"92 00 91", msgCount},
		{"92 00 dd ffffffff", msgCount},
		{"92 00 91 92 ac 426c6f636b52656d6f766564 dd 7fffffff 00", msgCount},
		{"92 00 91 92 a1 78 c1", msgReserved},
		{"92 00 91 92 a1 78 c6 ffffffff", msgEnd},
		{"92 00 91 92 a1 78 c9 ffffffff", msgEnd},
		{"92 00 91 92 a1 78 cd 00", msgEnd},
		{"92 00 91 92 a1 78 df ffffffff", msgCount},
		{"92 00 91 92 ac 426c6f636b52656d6f766564 91 cf 00", msgEnd},
		{"93 00 90 81", msgCount},
	}
	var d Decoder
	for _, tt := range tests {
		_, err := d.Decode(unhex(t, tt.hex))
		var fault *DecodeError
		if !errors.As(err, &fault) || fault.Reason != tt.want {
			t.Errorf("%s: %v, want %s", tt.hex, err, tt.want)
		}
	}
}

func TestLimits(t *testing.T) {
	batch := unhex(t, "92 00 92 92 ac 426c6f636b52656d6f766564 92 05 06 92 ac 426c6f636b52656d6f766564 92 07 08")
	for _, tt := range []struct {
		limits Limits
		want   string
	}{
		{Limits{Bytes: len(batch), Events: 2, Hashes: 4}, ""},
		{Limits{Bytes: len(batch) - 1}, msgBytes},
		{Limits{Events: 1}, msgMany},
		{Limits{Hashes: 3}, msgHashes},
	} {
		d := Decoder{Limits: tt.limits}
		_, err := d.Decode(batch)
		var fault *DecodeError
		if errors.As(err, &fault); (fault == nil) != (tt.want == "") || fault != nil && fault.Reason != tt.want {
			t.Errorf("%+v: %v, want %q", tt.limits, err, tt.want)
		}
	}
	named := unhex(t, "92 00 92 82 a4 74797065 ab 426c6f636b53746f726564 ac 626c6f636b5f686173686573 91 05"+
		"84 a4 74797065 ab 426c6f636b53746f726564 ac 626c6f636b5f686173686573 91 05 aa 73657373696f6e5f6964 a2 6162 a6 6d656469756d a2 6162")
	d := Decoder{Limits: Limits{Text: 1}}
	b, err := d.Decode(named)
	if err != nil || b.Malformed != 1 || len(b.Events) != 1 {
		t.Errorf("a medium over the limit: %v %+v", err, b)
	}
}

// TestDepth nests as deep as a batch may be long: nothing recurses.
func TestDepth(t *testing.T) {
	const deep = 4 << 20
	batch := append(unhex(t, "92 00 91"), strings.Repeat("\x91", deep)...)
	var d Decoder
	b, err := d.Decode(append(batch, 0xc0))
	if err != nil || b.Unknown != 1 {
		t.Errorf("%v", err)
	}
}

// TestApplyAllocatesNothing is a batch from the queue to the sink.
func TestApplyAllocatesNothing(t *testing.T) {
	cfg := Config{}.withDefaults()
	f := &feed{cfg: &cfg, worker: rank0, sink: &counter{}}
	f.track.init(&cfg)
	batch, seq := eventBatch(), uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		f.onBatch(t.Context(), seq, batch)
		seq++
	}); n != 0 || f.count.stored.Load() != 101 {
		t.Errorf("%v allocations, %d events", n, f.count.stored.Load())
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	var d Decoder
	batch := benchBatch(1024)
	if n := testing.AllocsPerRun(10, func() {
		if _, err := d.Decode(batch); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
