package assemblyscript_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
	"github.com/kvrt/kvrt/sdk/assemblyscript"
	"github.com/kvrt/kvrt/sdk/tck"
)

func spec() runtime.GuestSpec {
	return runtime.GuestSpec{Name: "as", Module: assemblyscript.Conformance(), Grants: []string{"kvrt_fetch", "kvrt_store", "kvrt_gpu"}, Limits: runtime.Limits{Instances: 2}}
}

// TestConformance judges the conformance guest by the kit.
func TestConformance(t *testing.T) {
	kit := &tck.Kit{Engine: wazero.New(wazero.Config{})}
	report, err := kit.Verify(context.Background(), spec(), os.DirFS("conformance/cases"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Error(p)
	}
	if report.Cases.Cases < 5 {
		t.Errorf("%d cases", report.Cases.Cases)
	}
	if len(assemblyscript.Conformance()) > 20_000 {
		t.Errorf("%d bytes", len(assemblyscript.Conformance()))
	}
	t.Logf("start %d fuel, %d bytes; %+v; notes %q", report.Start.Fuel, report.Start.Memory, report.Roles, report.Notes)
}

// soakEnv is how many calls the soak makes. It is short by default.
const soakEnv = "KVRT_SOAK_CALLS"

// TestSoak calls an AssemblyScript guest again and again. Each call makes garbage; the
// collector runs between calls only, so memory does not grow and no call pays for it.
func TestSoak(t *testing.T) {
	calls := 50_000
	if s := os.Getenv(soakEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		calls = n
	}
	kit := &tck.Kit{Engine: wazero.New(wazero.Config{})}
	s, err := kit.Soak(context.Background(), spec(), bodies(), calls)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d calls in %s; %d bytes in the first tenth of them, %d after it; fuel %d to %d; kvrt_idle %+v", s.Calls, s.Elapsed, s.Early, s.Late, s.LeastFuel, s.MostFuel, s.Idle)
	if s.Late > s.Early {
		t.Errorf("memory grew from %d to %d bytes", s.Early, s.Late)
	}
	if s.Idle.Calls == 0 || s.Idle.Traps != (runtime.IdleStats{}).Traps {
		t.Errorf("kvrt_idle: %+v", s.Idle)
	}
	for i := range s.MostFuel {
		if s.MostFuel[i] > 2*s.LeastFuel[i]+100_000 || s.MostFuel[i] > abi.DefaultFuel {
			t.Errorf("body %d took %d to %d fuel", i, s.LeastFuel[i], s.MostFuel[i])
		}
	}
}

// bodies are small envelopes, one that is refused, and one with 1,024 hashes.
func bodies() [][]byte {
	wrap := func(payload string) []byte {
		return []byte(`{"protocol_version":"0.1","message_id":"m","actions":[{"action_id":"a","action_type":"kv.fetch","action_version":"1.0","payload":` + payload + `}]}`)
	}
	hashes := strings.Repeat("578437695752307201,", 1023) + "1"
	var out [][]byte
	for i := range 32 {
		out = append(out, wrap(`{"source_control_endpoint":"tcp://127.0.0.1:23280","block_hashes":[1,2,`+strconv.Itoa(i)+`]}`))
	}
	return append(out, wrap(`{"block_hashes":"none"}`), wrap(`{"source_control_endpoint":"tcp://127.0.0.1:23280","block_hashes":[`+hashes+`]}`))
}
