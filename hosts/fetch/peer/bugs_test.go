package peer_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// publicBugs are reports of other systems' transfers between peers, and which tests
// here would have caught them: a test function, or one with a case of a suite.
var publicBugs = []struct{ bug, what, tests string }{
	{"vllm#52234", "a stale reference after the producer reused its blocks, and ids out of range, served as good", "TestLies TestTargetPauses peertest/prefix TestLiars TestPeerFaults"},
	{"vllm#50754", "a write that failed to start is never reported, and the reader waits over half a cache", "peertest/cut peertest/silent TestSourceDies TestPeerFaults TestThreeDaemons"},
	{"vllm#41269", "a rejected request strands the source's blocks for minutes", "peertest/vanish peertest/credit TestBadTargets TestPeerFaults"},
	{"vllm#50653", "both sides derive different numbers of blocks, so ids are out of range on some", "TestLies peertest/length"},
	{"vllm#49238", "a peer's restart is a fault when its old metadata is used", "peertest/restart TestSourceDies TestLies TestPeerFaults"},
	{"vllm#54363", "right length, wrong bytes; a hung source blocks its workers for ever", "peertest/flip TestSourcePauses peertest/trickle TestPeerFaults TestThreeDaemons"},
	{"ATOM#2249", "what was agreed with an address survives the restart of the peer behind it", "peertest/restart TestSourceDies TestLies TestPeerFaults"},
	{"nixl#1114", "stale segment metadata ends in wrong data", "TestLies peertest/restart"},
	{"aibrix#1772", "blocks expire while they are read", "TestTargetPauses peertest/silent"},
	{"Mooncake#2815", "every transfer over a chunk's size is wrong, and reported complete", "peertest/bytes peertest/flip"},
	{"Mooncake#1267", "the TCP path dies after minutes of load", "peertest/parallel TestOutcomesAddUp"},
	{"Mooncake#609", "transfers of 512 bytes always fail, large ones pass", "peertest/bytes"},
	{"Mooncake#3679", "a handle on the first buffer of a segment only, and silent detours for the others", "peertest/bytes"},
	{"LMCache#4830", "memory is freed in mid-transfer", "TestDeadlineFreesNoSlot"},
	{"valkey-glide#6215", "a view of a buffer outlives its slot, and a late answer lands in recycled memory", "TestDeadlineFreesNoSlot peertest/cancel peertest/silent"},
	{"LMCache#4467", "two layouts of one shape, and the wrong one is guessed", "peertest/length peertest/namespace TestLies TestLiars"},
	{"sglang#23392", "cancelling one request harms another that shares its prefix", "TestAnothersFailure TestDeadlineFreesNoSlot"},
	{"kvcached#362", "a reused block keeps its old hash", "TestTargetPauses TestLies"},
	{"openvino.genai#3722", "a collision of hashes returns another block", "peertest/namespace"},
	{"TensorRT-LLM#15546", "the next step overwrites a table that a transfer still reads", "peertest/kept TestTargetPauses"},
}

// published are the reports about transfers of KV blocks that were looked through. Each is in
// the list above, or in that of the tests of devices.
const published = `vllm#52234 vllm#45704 vllm#47282 LMCache#4830 valkey-glide#6215 LMCache#2706 rtx6kpro#47 LMCache#4467
TensorRT-LLM#15546 Mooncake#2815 Mooncake#1267 Mooncake#609 Mooncake#917 nixl#1114 Mooncake#3679 sglang#20611 sglang#22811
sglang#38031 sglang#23392 vllm#50653 vllm#50754 vllm#41269 aibrix#1772 vllm#49238 ATOM#2249 vllm#45466 openvino.genai#3722
kvcached#362 vllm#54363 llm-d-kv-cache`

// TestNoBugIsForgotten: every published report is in one of the two lists, and no row is
// about another.
func TestNoBugIsForgotten(t *testing.T) {
	devices, err := os.ReadFile("../../gpu/bugs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for _, b := range publicBugs {
		listed[b.bug] = true
	}
	known := strings.Fields(published)
	for _, bug := range known {
		if !listed[bug] && !regexp.MustCompile(regexp.QuoteMeta(bug)+`[",]`).Match(devices) {
			t.Errorf("no test is named for %s", bug)
		}
		delete(listed, bug)
	}
	for bug := range listed {
		t.Errorf("%s is no published report", bug)
	}
	if len(known) != 30 {
		t.Errorf("%d reports", len(known))
	}
}

// TestPublicBugs: every test that the list names exists.
func TestPublicBugs(t *testing.T) {
	var text strings.Builder
	read := func(path string, d os.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "peertest.go") {
			var b []byte
			b, err = os.ReadFile(path)
			text.Write(b)
		}
		return err
	}
	for _, root := range []string{"..", "../../../cmd/kvrt"} {
		if err := filepath.WalkDir(root, read); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range publicBugs {
		for test := range strings.FieldsSeq(b.tests) {
			pattern := `func ` + test + `\(t \*testing\.T\)`
			if suite, name, ok := strings.Cut(test, "/"); ok && suite == "peertest" {
				pattern = `\{"` + name + `", "`
			}
			if !regexp.MustCompile(pattern).MatchString(text.String()) {
				t.Errorf("%s: there is no test %s", b.bug, test)
			}
		}
	}
}
