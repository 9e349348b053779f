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
	{"vllm#52234", "a stale reference after the producer reused its blocks, and ids out of range, served as good", "TestLies TestTargetPauses peertest/prefix"},
	{"vllm#50754", "a write that failed to start is never reported, and the reader waits over half a cache", "peertest/cut peertest/silent TestSourceDies"},
	{"vllm#41269", "a rejected request strands the source's blocks for minutes", "peertest/vanish peertest/credit TestBadTargets"},
	{"vllm#50653", "both sides derive different numbers of blocks, so ids are out of range on some", "TestLies peertest/length"},
	{"vllm#49238", "a peer's restart is a fault when its old metadata is used", "peertest/restart TestSourceDies"},
	{"vllm#54363", "right length, wrong bytes; a hung source blocks its workers for ever", "peertest/flip TestSourcePauses peertest/trickle"},
	{"ATOM#2249", "what was agreed with an address survives the restart of the peer behind it", "peertest/restart TestSourceDies"},
	{"nixl#1114", "stale segment metadata ends in wrong data", "TestLies peertest/restart"},
	{"aibrix#1772", "blocks expire while they are read", "TestTargetPauses peertest/silent"},
	{"Mooncake#2815", "every transfer over a chunk's size is wrong, and reported complete", "peertest/bytes peertest/flip"},
	{"Mooncake#1267", "the TCP path dies after minutes of load", "peertest/parallel TestOutcomesAddUp"},
	{"Mooncake#609", "transfers of 512 bytes always fail, large ones pass", "peertest/bytes"},
	{"Mooncake#3679", "a handle on the first buffer of a segment only, and silent detours for the others", "peertest/bytes"},
	{"LMCache#4830", "memory is freed in mid-transfer", "TestDeadlineFreesNoSlot"},
	{"valkey-glide#6215", "a view of a buffer outlives its slot, and a late answer lands in recycled memory", "TestDeadlineFreesNoSlot peertest/cancel peertest/silent"},
	{"LMCache#4467", "two layouts of one shape, and the wrong one is guessed", "peertest/length peertest/namespace"},
	{"sglang#23392", "cancelling one request harms another that shares its prefix", "TestAnothersFailure TestDeadlineFreesNoSlot"},
	{"kvcached#362", "a reused block keeps its old hash", "TestTargetPauses TestLies"},
	{"openvino.genai#3722", "a collision of hashes returns another block", "peertest/namespace"},
	{"TensorRT-LLM#15546", "the next step overwrites a table that a transfer still reads", "peertest/kept TestTargetPauses"},
}

// TestPublicBugs: every test that the list names exists.
func TestPublicBugs(t *testing.T) {
	var text strings.Builder
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "peertest.go") {
			var b []byte
			b, err = os.ReadFile(path)
			text.Write(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
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
