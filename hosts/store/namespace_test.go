package store

import (
	"strings"
	"testing"
)

func TestTenant(t *testing.T) {
	for _, tenant := range []string{"", "a", "1:", "4:acme", strings.Repeat("t", 300), "höst"} {
		for _, name := range []string{"", "model", "1:x"} {
			if got := Tenant(Namespace(tenant, name)); got != tenant {
				t.Errorf("%q, want %q", got, tenant)
			}
		}
	}
	for _, odd := range []string{"", "a", ":", "x:abc", "-1:abc", "4:abc", "99999999999999999999:a"} {
		if got := Tenant(odd); got != "" {
			t.Errorf("%q of %q", got, odd)
		}
	}
}
