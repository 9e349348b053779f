package wasmtime

import (
	"os"
	"strings"
	"testing"
)

// TestVersion: what programs show of the library is what they are built with, and what
// the package comment says.
func TestVersion(t *testing.T) {
	major, _, _ := strings.Cut(Version, ".")
	mod, err := os.ReadFile("../../go.mod")
	if err != nil || !strings.Contains(string(mod), "wasmtime-go/"+major+" "+Version) {
		t.Errorf("go.mod has not %s (%v)", Version, err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	comment, _, _ := strings.Cut(string(doc), "package wasmtime\n")
	if !strings.Contains(comment, "could be had, "+major+",") {
		t.Errorf("the package comment is about another version than %s", major)
	}
	for _, id := range []string{"34971", "34987", "34941", "34946", "34983", "34988", "35195"} {
		if !strings.Contains(Advisories, "-"+id) || !strings.Contains(comment, "-"+id) {
			t.Errorf("CVE-2026-%s is not named in both", id)
		}
	}
}
