package hint_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// TestManyActions: results are bounded by the limit, not by how many actions fit into
// a body.
func TestManyActions(t *testing.T) {
	const before, packed = `{"actions":[`, "\x81\xa7actions\xdd\x00\x1e\x84\x81"
	small := strings.Repeat(`0, `, 13)
	for _, test := range []struct {
		body   string
		limit  int
		offset int
	}{
		{before + strings.Repeat(`0,`, 2_000_000) + `0]}`, 0, len(before) + 2*4096},
		{packed + strings.Repeat("\x00", 2_000_001), 0, len(packed) + 4096},
		{before + small[:len(small)-2] + `]}`, 3, len(before) + 3*12},
		{before + small + `what is behind is not read`, 3, len(before) + 3*12},
	} {
		var f hint.Frame
		err := f.Decode(0, []byte(test.body), hint.Limits{Actions: test.limit})
		var bad *hint.MalformedError
		want := "more than 4096 actions"
		if test.limit == 3 {
			want = "more than 12 actions"
		}
		if !errors.As(err, &bad) || bad.Offset != test.offset || bad.Msg != want || f.Len() != 0 {
			t.Errorf("%.20q: %v, want %s at offset %d", test.body, err, want, test.offset)
		}
	}

	most := js(envelope(make(arr, 12)...))
	var f hint.Frame
	if err := decode(t, &f, 0, most, hint.Limits{Actions: 3}); err != nil || f.Len() != 12 {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() {
		for i := 3; i < 12; i++ {
			if reason, _ := f.Action(i).Fault(); reason != abi.ReasonLimitExceeded {
				t.Fatal(reason)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations for the faults of surplus actions", n)
	}

	src := mustDecode(t, 0, js(envelope(make(arr, 13)...)))
	answer := src.AppendSubset(nil, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, false)
	if err := f.Load(hint.FormatJSON, answer, hint.Limits{Actions: 3}); !errors.Is(err, abi.ErrFrame) || !strings.Contains(err.Error(), "more than 12 actions") || f.Len() != 0 {
		t.Errorf("load: %v", err)
	}
	if err := f.Load(hint.FormatJSON, answer, hint.Limits{Actions: 4}); err != nil || f.Len() != 13 {
		t.Errorf("load: %v", err)
	}
}
