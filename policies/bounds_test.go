package policies_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
)

// A sender decides how much there is in an envelope. Where a guest would have to look
// at all of it, it stops at a bound and says so: running out of fuel would cost the
// instance, and several of them the guest.
func TestBounds(t *testing.T) {
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":null,`, i)
		}
		return b.String()
	}
	list := func(n int, elem string) string { return strings.Repeat(elem+",", n-1) + elem }
	fetch := func(payload string) string { return envelope("kv.fetch", payload) }
	retain := func(payload string) string { return envelope("kv.retain", payload) }
	blocks := func(hashes string) string {
		return retain(`{"execute_at":"request_completion","include_current_request":false,"priority":1,"ttl_seconds":1,"block_hashes":[` + hashes + `]}`)
	}
	texts := `"18446744073709551615"`
	evict := func(more string) string {
		return envelope("kv.evict", `{"execute_at":"now","include_current_request":false,`+more+`}`)
	}
	prefetch := func(more string) string {
		return envelope("kv.prefetch", `{"source_control_endpoint":"tcp://h:1",`+more+`}`)
	}
	for _, c := range []struct {
		guest, name, body string
		want              abi.Reason
	}{
		{"kv-fetch", "256 keys", fetch(`{` + keys(255) + `"block_hashes":[1]}`), abi.ReasonNone},
		{"kv-fetch", "257 keys", fetch(`{` + keys(256) + `"block_hashes":[1]}`), abi.ReasonLimitExceeded},
		{"kv-fetch", "250,000 keys", fetch(`{` + keys(250_000) + `"block_hashes":[1]}`), abi.ReasonLimitExceeded},
		{"kv-fetch", "a bad hash at place 65,535", fetch(`{"block_hashes":[` + list(65_535, "1") + `,null]}`), abi.ReasonInvalidPayload},
		{"kv-fetch", "a bad hash at place 200,000", fetch(`{"block_hashes":[` + list(200_000, "1") + `,null]}`), abi.ReasonInvalidPayload},
		{"kv-fetch", "a version of 1 MB", strings.Replace(fetch(`{}`), `"1.0"`, `"1.`+strings.Repeat("0", 1<<20)+`"`, 1), abi.ReasonUnsupportedActionVersion},
		{"kv-fetch", "a mode of 1 MB", fetch(`{"block_hashes":[1],"mode":"` + strings.Repeat("c", 1<<20) + `"}`), abi.ReasonInvalidPayload},
		{"kv-retain", "256 keys", retain(`{` + keys(255) + `"directives":[]}`), abi.ReasonNone},
		{"kv-retain", "257 keys", retain(`{` + keys(256) + `"directives":[]}`), abi.ReasonLimitExceeded},
		{"kv-retain", "250,000 keys", retain(`{` + keys(250_000) + `"directives":[]}`), abi.ReasonLimitExceeded},
		{"kv-retain", "a directive of 250,000 fields", retain(`{"directives":[{` + keys(250_000) + `"priority":1}]}`), abi.ReasonInvalidPayload},
		{"kv-retain", "100,000 directives", retain(`{"directives":[` + list(100_000, `{}`) + `]}`), abi.ReasonLimitExceeded},
		{"kv-retain", "4,096 hashes as text", blocks(list(4096, texts)), abi.ReasonNone},
		{"kv-retain", "4,097 hashes as text", blocks(list(4097, texts)), abi.ReasonLimitExceeded},
		{"kv-retain", "100,000 hashes as integers", blocks(list(100_000, "18446744073709551615")), abi.ReasonNone},
		{"kv-retain", "a version of 1 MB", strings.Replace(retain(`{}`), `"1.0"`, `"`+strings.Repeat("0", 1<<20)+`1"`, 1), abi.ReasonUnsupportedActionVersion},
		{"kv-retain", "a scope of 1 MB", retain(`{"scope":"` + strings.Repeat("s", 1<<20) + `","directives":[]}`), abi.ReasonLimitExceeded},
		{"kv-evict", "256 keys", evict(keys(253) + `"block_hashes":[1]`), abi.ReasonNone},
		{"kv-evict", "257 keys", evict(keys(254) + `"block_hashes":[1]`), abi.ReasonLimitExceeded},
		{"kv-evict", "250,000 keys", evict(keys(250_000) + `"block_hashes":[1]`), abi.ReasonLimitExceeded},
		{"kv-evict", "4,096 hashes as text", evict(`"block_hashes":[` + list(4096, texts) + `]`), abi.ReasonNone},
		{"kv-evict", "4,097 hashes as text", evict(`"block_hashes":[` + list(4097, texts) + `]`), abi.ReasonLimitExceeded},
		{"kv-evict", "100,000 nulls", evict(`"block_hashes":[` + list(100_000, "null") + `]`), abi.ReasonLimitExceeded},
		{"kv-evict", "24,576 hashes as integers", evict(`"block_hashes":[` + list(24_576, "18446744073709551615") + `]`), abi.ReasonNone},
		{"kv-evict", "24,577 hashes as integers", evict(`"block_hashes":[` + list(24_577, "1") + `]`), abi.ReasonLimitExceeded},
		{"kv-evict", "a hash of 1 MB", evict(`"block_hashes":["` + strings.Repeat("1", 1<<20) + `"]`), abi.ReasonInvalidPayload},
		{"kv-evict", "a version of 1 MB", strings.Replace(evict(`"block_hashes":[1]`), `"1.0"`, `"1.`+strings.Repeat("0", 1<<20)+`"`, 1), abi.ReasonUnsupportedActionVersion},
		{"kv-prefetch", "256 keys", prefetch(keys(254) + `"block_hashes":[1]`), abi.ReasonNone},
		{"kv-prefetch", "257 keys", prefetch(keys(255) + `"block_hashes":[1]`), abi.ReasonLimitExceeded},
		{"kv-prefetch", "250,000 keys", prefetch(keys(250_000) + `"block_hashes":[1]`), abi.ReasonLimitExceeded},
		{"kv-prefetch", "24,576 hashes", prefetch(`"block_hashes":[` + list(24_576, "18446744073709551615") + `]`), abi.ReasonNone},
		{"kv-prefetch", "24,577 hashes", prefetch(`"block_hashes":[` + list(24_577, "18446744073709551615") + `]`), abi.ReasonLimitExceeded},
		{"kv-prefetch", "a bad hash at place 65,535", prefetch(`"block_hashes":[` + list(65_535, "1") + `,null]`), abi.ReasonInvalidPayload},
		{"kv-prefetch", "a bad hash at place 200,000", prefetch(`"block_hashes":[` + list(200_000, "1") + `,null]`), abi.ReasonInvalidPayload},
		{"kv-prefetch", "a tier of 1 MB", prefetch(`"block_hashes":[1],"tier":"` + strings.Repeat("d", 1<<20) + `"`), abi.ReasonInvalidPayload},
		{"router-hint", "256 keys", `{` + keys(255) + `"block_hashes":[1]}`, abi.ReasonNone},
		{"router-hint", "257 keys", `{` + keys(256) + `"block_hashes":[1]}`, abi.ReasonLimitExceeded},
		{"router-hint", "257 keys of a wrapped hint", `{"router_hint":{` + keys(256) + `"block_hashes":[1]}}`, abi.ReasonLimitExceeded},
		{"router-hint", "257 keys beside a hint", `{"kv_transfer_params":{` + keys(256) + `"router_hint":{"block_hashes":[1]}}}`, abi.ReasonLimitExceeded},
		{"router-hint", "4,096 values", `{"block_hashes":[1],"x":[` + list(4091, "null") + `]}`, abi.ReasonNone},
		{"router-hint", "4,097 values", `{"block_hashes":[1],"x":[` + list(4092, "null") + `]}`, abi.ReasonLimitExceeded},
		{"router-hint", "300,000 values", `{"block_hashes":[1],"x":[` + list(300_000, "null") + `]}`, abi.ReasonLimitExceeded},
	} {
		t.Run(c.guest+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			h, err := newHosts(t, c.guest).load(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.only(t, c.body); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Cutting directives off copies the action as it lies, so that it costs the same
// whatever else is in it.
func TestCutOfALargeAction(t *testing.T) {
	h, err := newHosts(t, "kv-retain").load(context.Background(), []byte(`{"mode":"lenient"}`))
	if err != nil {
		t.Fatal(err)
	}
	note := `"note":[` + strings.Repeat(`null,{"a":1.5},`, 20_000) + `"end"]`
	directives := func(n int) string {
		return `{"scope":"s","directives":[` + strings.Repeat(`{"priority":1},`, n-1) + `{"priority":1}],` + note + `}`
	}
	res, err := h.dispatch([]byte(envelope("kv.retain", directives(129))))
	if err != nil {
		t.Fatal(err)
	}
	if r := res.Results[0]; r.Reason != abi.ReasonNone {
		t.Fatalf("%s %q", r.Reason, r.Detail)
	}
	if want := envelope("kv.retain", directives(128)); string(res.Forward) != want {
		t.Errorf("what is passed on is not the action with 128 directives: %.300s", res.Forward)
	}
}
