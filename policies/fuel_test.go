package policies_test

import (
	"context"
	"strings"
	"testing"
)

// Fuel is exact, so what an ordinary action costs the guest is held here: not more than
// a tenth above what it was when it was measured.
func TestFuel(t *testing.T) {
	retain := func(directives int) string {
		d := `{"start":0,"end":64,"priority":50,"duration":600}`
		return envelope("kv.retain", `{"scope":"s","directives":[`+strings.Repeat(d+",", directives-1)+d+`]}`)
	}
	fetch := func(hashes int) string {
		return envelope("kv.fetch", `{"source_control_endpoint":"tcp://10.0.0.9:23280","block_hashes":`+hashList(hashes)+`}`)
	}
	evict := func(hashes string) string {
		return envelope("kv.evict", `{"execute_at":"request_completion","include_current_request":false,"block_hashes":`+hashes+`}`)
	}
	texts := `["` + strings.Repeat(`12345678901234567890","`, 1023) + `1"]`
	prefetch := func(hashes int) string {
		return envelope("kv.prefetch", `{"source_control_endpoint":"tcp://10.0.0.9:23280","block_hashes":`+hashList(hashes)+`}`)
	}
	for _, c := range []struct {
		guest, name, body string
		most              uint64
	}{
		{"kv-fetch", "1 hash", fetch(1), 274},
		{"kv-fetch", "1,024 hashes", fetch(1024), 274},
		{"kv-fetch", "rejected", envelope("kv.fetch", `{"block_hashes":[-1]}`), 3_000},
		{"kv-retain", "1 directive", retain(1), 4_410},
		{"kv-retain", "128 directives", retain(128), 155_000},
		{"kv-evict", "1 hash", evict(`[1]`), 786},
		{"kv-evict", "1,024 hashes", evict(hashList(1024)), 72_900},
		{"kv-evict", "1,024 hashes as text", evict(texts), 414_000},
		{"kv-prefetch", "1 hash", prefetch(1), 418},
		{"kv-prefetch", "1,024 hashes", prefetch(1024), 418},
		{"kv-prefetch", "rejected", envelope("kv.prefetch", `{}`), 2_800},
	} {
		t.Run(c.guest+"/"+c.name, func(t *testing.T) {
			h, err := newHosts(t, c.guest).load(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := h.dispatch([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if fuel := res.Results[0].Fuel; fuel == 0 || fuel > c.most {
				t.Errorf("%d fuel, want at most %d", fuel, c.most)
			}
		})
	}
}
