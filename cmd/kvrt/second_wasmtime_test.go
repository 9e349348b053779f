//go:build wasmtime && amd64 && cgo

package main

import (
	"encoding/json"
	"testing"
)

// TestVerifyOnBothEngines: verify makes the calls of the probes on the second engine as
// well, in its child, within its limits.
func TestVerifyOnBothEngines(t *testing.T) {
	for _, guest := range []string{"kv-fetch", "kv-retain", "router-hint"} {
		code, out, errs := invoke("verify", "-o", "json", "--timeout", "1m", "embedded:"+guest)
		var v verdict
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitOK || len(v.Engines) != 2 || v.Engines[1] != "wasmtime" || v.Compared < 10 {
			t.Errorf("%s: code %d, %v: %s%s", guest, code, err, out, errs)
		}
	}
}
