package config

import (
	"fmt"
	"testing"
	"time"
)

func TestClassify(t *testing.T) {
	for in, want := range map[string]string{
		"": "no value ", "~": "no value ~", "Null": "no value Null",
		"True": "a boolean true", "false": "a boolean false",
		"0": "an integer 0", "-0": "an integer 0", "+12": "an integer 12", "-12": "an integer -12",
		"0x1F": "an integer 31", "0o17": "an integer 15", "0xffffffffffffffff": "an integer 18446744073709551615",
		"99999999999999999999": "an integer 99999999999999999999",
		"1.":                   "a number 1.", ".5": "a number .5", "-1.5e+10": "a number -1.5e+10", "1e5": "a number 1e5", ".inf": "a number .inf", "-.INF": "a number -.INF", ".nan": "a number .nan",
		".": "a string .", "-": "a string -", "+": "a string +", "1e": "a string 1e", "e5": "a string e5", ".e5": "a string .e5", "1.5.2": "a string 1.5.2", "--1": "a string --1", "0x": "a string 0x", "0xg": "a string 0xg",
		"1_a": "a string 1_a", "_1": "a string _1", "2024-01-01": "a string 2024-01-01", "1:30": "a string 1:30", "-.nan": "a string -.nan", "tRue": "a string tRue", "y": "a string y",
	} {
		sh, text := classify(in)
		if got := fmt.Sprintf("%s %s", sh, text); got != want {
			t.Errorf("classify(%q) = %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{"yes", "No", "ON", "off", "0777", "-01", "00", "1_000", "1_000.5", "0b1", "0B1", "0X1f", "0O7", "-0x1", "0x1_f", "0x10000000000000000"} {
		if sh, _ := classify(in); sh != ambiguous {
			t.Errorf("classify(%q) = %s, want ambiguous", in, sh)
		}
	}
}

func TestSize(t *testing.T) {
	for in, want := range map[string]Size{
		"0": 0, "1": 1, "5B": 5, "64KiB": 64 << 10, "16MiB": 16 << 20, "1GiB": 1 << 30, "3TiB": 3 << 40, "9223372036854775807": 1<<63 - 1, "8388607TiB": 8388607 << 40,
	} {
		got, msg := parseSize(in)
		if msg != "" || got != want {
			t.Errorf("parseSize(%q) = %d, %s", in, got, msg)
		}
		if again, msg := parseSize(got.String()); again != got || msg != "" {
			t.Errorf("%q is written as %s", in, got)
		}
	}
	for _, in := range []string{"", "-1", "1.5MiB", "MiB", "1MB", "1M", "1 MiB", "1mib", "1KiBB", "1BKi", "1PiB", "9223372036854775808", "8388608TiB", "99999999999999999999"} {
		if got, msg := parseSize(in); msg == "" {
			t.Errorf("parseSize(%q) = %d", in, got)
		}
	}
	for in, want := range map[Size]string{0: "0", 1000: "1000", 1024: "1KiB", 1536: "1536", 1 << 30: "1GiB", 1 << 50: "1024TiB"} {
		if got := in.String(); got != want {
			t.Errorf("%d is written as %s, want %s", uint64(in), got, want)
		}
	}
}

func TestShortDuration(t *testing.T) {
	for in, want := range map[time.Duration]string{
		0: "0s", time.Minute: "1m", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m", 20 * time.Second: "20s",
		time.Hour + 20*time.Second: "1h0m20s", 250 * time.Millisecond: "250ms", 100 * time.Hour: "100h", 1500 * time.Millisecond: "1.5s",
	} {
		if got := shortDuration(in); got != want {
			t.Errorf("%d is written as %s, want %s", in, got, want)
		}
		if back, err := time.ParseDuration(want); err != nil || back != in {
			t.Errorf("%s reads back as %d, %v", want, back, err)
		}
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "a", "EMPTY": "", "DOLLAR": "$$ ${env:A}"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for in, want := range map[string]string{
		"": "", "x": "x", "$": "$", "$$": "$", "$$$": "$$", "$$$$": "$$", "$x": "$x", "^a$": "^a$",
		"${env:A}": "a", "<${env:A}${env:A}>": "<aa>", "$${env:A}": "${env:A}", "$$${env:A}": "$a",
		"${env:EMPTY}": "", "${env:EMPTY:-d}": "d", "${env:NONE:-d}": "d", "${env:NONE:-}": "", "${env:A:-d}": "a", "${env:NONE:-a:-b}": "a:-b",
		"${env:DOLLAR}": "$$ ${env:A}",
	} {
		if got, _, err := expand(in, lookup); err != nil || got != want {
			t.Errorf("expand(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	env["BROKEN"] = "\xff"
	for _, in := range []string{"${env:NONE}", "${", "${}", "${env:}", "${env:A", "${A}", "${file:/x}", "${env:1A}", "${env:A-B}", "${env:A:?x}", "${env:BROKEN}"} {
		if got, _, err := expand(in, lookup); err == nil {
			t.Errorf("expand(%q) = %q", in, got)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"memory", "fuel", "instances", "warn", "admin", "admin_insecure"}
	for in, want := range map[string]string{
		"memroy": "memory", "MEMORY": "memory", "memory_": "memory", "fule": "fuel", "instance": "instances", "warning": "warn", "adminInsecure": "admin_insecure",
	} {
		if got := didYouMean(in, known, "one of "); got != ` (did you mean "`+want+`"?)` {
			t.Errorf("%s: %s", in, got)
		}
	}
	for _, in := range []string{"", "x", "timeout"} {
		if got := didYouMean(in, known, "one of "); got != ": one of memory, fuel, instances, warn, admin, admin_insecure" {
			t.Errorf("%s: %s", in, got)
		}
	}
}
