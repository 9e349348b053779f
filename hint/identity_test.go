package hint_test

import (
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// TestIdentityCheck: an identity that passes makes a frame that the ABI allows.
func TestIdentityCheck(t *testing.T) {
	long := strings.Repeat("é", 256)
	for _, test := range []struct {
		id   hint.Identity
		want string
	}{
		{hint.Identity{}, ""}, {testID, ""}, {hint.Identity{RequestID: long, Engine: long, Leg: abi.LegDecode, DPRank: 1<<32 - 1, Attempt: 1<<32 - 1}, ""}, {hint.Identity{RequestID: "\x00"}, ""},
		{hint.Identity{RequestID: long + "x"}, "identity: request_id has 513 bytes: want at most 512"}, {hint.Identity{Engine: long + "x"}, "identity: engine has 513 bytes: want at most 512"},
		{hint.Identity{RequestID: "r\xff"}, "identity: request_id is not UTF-8"}, {hint.Identity{Engine: "\xed\xa0\x80"}, "identity: engine is not UTF-8"},
		{hint.Identity{Leg: abi.LegDecode + 1}, "identity: leg is 4: want at most 3, decode"}, {hint.Identity{Leg: 1 << 31}, "identity: leg is 2147483648: want at most 3, decode"},
	} {
		err := test.id.Check()
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%+v: %v, want %q", test.id, err, test.want)
		}
		if err != nil {
			continue
		}
		f := mustDecode(t, 0, goldenBytes(t))
		f.Finish(test.id)
		if err := abi.CheckEnvelope(f.Bytes()); err != nil {
			t.Errorf("%+v: %v", test.id, err)
		}
		if n := testing.AllocsPerRun(10, func() { _ = test.id.Check() }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
