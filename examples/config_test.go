package examples

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/config"
)

const configFile = "config/kvrt.yaml"

// TestConfig reads the example as it stands, and once more with the keys that it shows
// in comments.
func TestConfig(t *testing.T) {
	t.Setenv("KVRT_SOURCES", "tcp://192.168.0.0/16")
	cfg, err := config.Load(configFile)
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Fetch.AllowedSources[2]; got != "tcp://192.168.0.0/16" {
		t.Errorf("the variable gave %s", got)
	}
	text, err := os.ReadFile(configFile)
	if err != nil {
		t.Fatal(err)
	}
	_, tail, ok := strings.Cut(string(text), "an engine in another process does not read it.\n")
	if !ok {
		t.Fatal("no commented keys at the end")
	}
	var b strings.Builder
	for line := range strings.Lines(tail) {
		b.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
	}
	cfg, err = config.Parse(configFile, []byte("store: {capacity: 2GiB}\n"+b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.GPU.Device != config.DeviceAuto {
		t.Errorf("gpu.device is %q", cfg.GPU.Device)
	}
}

// TestConfigShowsEveryKey holds the example to the schema.
func TestConfigShowsEveryKey(t *testing.T) {
	text, err := os.ReadFile(configFile)
	if err != nil {
		t.Fatal(err)
	}
	var schema any
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	collect(schema, keys)
	if len(keys) < 30 {
		t.Fatalf("only %d keys in the schema", len(keys))
	}
	for key := range keys {
		if !regexp.MustCompile(`(?m)(^|[ {#])` + regexp.QuoteMeta(key) + `:( |$)`).Match(text) {
			t.Errorf("%s is not shown", key)
		}
	}
}

// collect gathers the names under properties.
func collect(v any, keys map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if props, ok := v["properties"].(map[string]any); ok {
			for key := range props {
				keys[key] = true
			}
		}
		for _, sub := range v {
			collect(sub, keys)
		}
	case []any:
		for _, sub := range v {
			collect(sub, keys)
		}
	}
}
