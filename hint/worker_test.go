package hint_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

func TestWorkerID(t *testing.T) {
	for _, c := range []struct {
		id   hint.WorkerID
		json string
		node abi.Node
	}{
		{hint.UintWorker(7), `7`, abi.Uint(7)},
		{hint.IntWorker(7), `7`, abi.Uint(7)},
		{hint.IntWorker(-7), `-7`, abi.Int(-7)},
		{hint.UintWorker(math.MaxUint64), `18446744073709551615`, abi.Uint(math.MaxUint64)},
		{hint.IntWorker(math.MinInt64), `-9223372036854775808`, abi.Int(math.MinInt64)},
		{hint.NamedWorker("7"), `"7"`, abi.Node{Tag: abi.TagString}},
		{hint.NamedWorker("a\x01\"é"), `"a\u0001\"é"`, abi.Node{Tag: abi.TagString}},
	} {
		b, err := json.Marshal(c.id)
		if err != nil || string(b) != c.json {
			t.Errorf("%s: %s, %v, want %s", c.id, b, err, c.json)
		}
		var back hint.WorkerID
		if err := json.Unmarshal(b, &back); err != nil || back != c.id {
			t.Errorf("%s read back as %s, %v", b, back, err)
		}
		if err := c.id.Check(); err != nil || c.id.Node() != c.node {
			t.Errorf("%s: node %v, %v", c.id, c.id.Node(), err)
		}
	}
	if hint.UintWorker(7) == hint.NamedWorker("7") || hint.NamedWorker("") != (hint.WorkerID{}) || !hint.NamedWorker("").IsZero() {
		t.Error("an integer and a text are two ids, and no text is none")
	}
}

func TestWorkerIDRefuses(t *testing.T) {
	for _, bad := range []string{`""`, `null`, `1.5`, `1e3`, `true`, `{}`, `18446744073709551616`, `-9223372036854775809`, `"` + strings.Repeat("x", hint.MaxIdentity+1) + `"`} {
		var id hint.WorkerID
		if err := json.Unmarshal([]byte(bad), &id); err == nil && bad != "null" {
			t.Errorf("%.20s was taken as %s", bad, id)
		}
	}
	for _, bad := range []hint.WorkerID{{}, hint.NamedWorker("\xff"), hint.NamedWorker(strings.Repeat("x", hint.MaxIdentity+1))} {
		if bad.Check() == nil {
			t.Errorf("%.20s passes", bad)
		}
	}
}

func TestWorkerIDOrder(t *testing.T) {
	want := []hint.WorkerID{{}, hint.IntWorker(-9), hint.IntWorker(-1), hint.UintWorker(0), hint.UintWorker(9), hint.UintWorker(10), hint.NamedWorker("10"), hint.NamedWorker("9")}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, hint.WorkerID.Compare)
	if !slices.Equal(got, want) {
		t.Errorf("order %v", got)
	}
	if got := (hint.Worker{ID: want[4], Rank: 2, HasRank: true}).String(); got != "9 rank 2" {
		t.Error(got)
	}
}
