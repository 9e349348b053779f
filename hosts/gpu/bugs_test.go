package gpu_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bugs are faults of transfers that were made in public, by others, and which test here
// fails when one is made again. A test is "FILE: FUNCTION" below this folder.
var bugs = []struct{ where, what, test string }{
	{"vllm-project/vllm#52234", "block ids out of range read garbage", "gputest/life.go: refusedSpans"},
	{"vllm-project/vllm#50653", "ranks count blocks differently, and ids leave the pool of some", "gputest/life.go: refusedSpans"},
	{"vllm-project/vllm#45704", "a store that is not ordered after the kernel that writes its source, with source order ANY", "cuda/driver_test.go: TestEngineEvent"},
	{"vllm-project/vllm#45704, second part", "source order ANY at all: the fake driver writes it down", "cuda/cuda_test.go: TestDevice"},
	{"vllm-project/vllm#47282", "a load overwrites a block that is still read", "gputest/bytes.go: writeAfterRead"},
	{"LMCache/LMCache#4830", "a pinned temporary is freed while it is copied", "gputest/life.go: heldMemory"},
	{"valkey-io/valkey-glide#6215", "a view outlives its slot and writes into what comes after", "gputest/life.go: refusedSpans"},
	{"LMCache/LMCache#2706", "reads and writes on two streams race on shared blocks", "gputest/bytes.go: againstModel"},
	{"local-inference-lab/rtx6kpro#47", "an event is handed over and not waited for", "cuda/driver_test.go: TestEngineEvent"},
	{"NVIDIA/TensorRT-LLM#15546", "a table is filled again before its copy has run", "gputest/life.go: notBeforeTheFence"},
	{"kvcache-ai/Mooncake#2815", "a device address is used as the host's, unseen where the test's device is host memory", "cuda/cuda_test.go: TestDevice"},
	{"kvcache-ai/Mooncake#2815, second part", "all pieces of a long copy but the first are wrong", "gputest/bytes.go: thereAndBack"},
	{"kvcache-ai/Mooncake#917", "a GPU's address on the path for host memory", "cuda/driver_test.go: TestAdopt"},
	{"kvcache-ai/Mooncake#3679", "a buffer that is not the first of its segment", "cuda/driver_test.go: TestAdopt"},
	{"sgl-project/sglang#20611", "a store races the kernel that comes next", "gputest/bytes.go: writeAfterRead"},
	{"sgl-project/sglang#22811", "one reader passes over the wait", "gputest/bytes.go: writeAfterRead"},
	{"vllm-project/vllm#50754", "a write that could not be posted is never reported", "gputest/life.go: partFails"},
	{"vllm-project/vllm#50754, second part", "what follows a failed copy is done as if it had worked", "gputest/life.go: partFails"},
	{"vllm-project/vllm#41269", "a request that was refused keeps blocks", "gputest/life.go: refusedMemory"},
	{"vllm-project/aibrix#1772", "blocks expire while they are read", "gputest/life.go: heldMemory"},
	{"ROCm/ATOM#2249", "what was known of an address outlives its owner", "plan_test.go: TestTable"},
	{"vllm-project/vllm#45466", "only the source's alignment is looked at", "gputest/life.go: refusedSpans"},
	{"vllm-project/vllm#51081", "a registration fails, stays pending and surfaces elsewhere", "cuda/driver_test.go: TestRegisterInChunks"},
	{"sgl-project/sglang#38031", "what is loaded back lies in the packed layout where it should not", "gputest/bytes.go: againstModel"},
	{"llm-d/llm-d-kv-cache, the batched copier's stores", "source order ANY, safe only behind a wait: the fake driver writes it down", "cuda/cuda_test.go: TestDevice"},
	{"no one report", "the calls of a lost device hang, or are taken as done", "gputest/life.go: lost"},
	{"vllm-project/vllm#52234, second part", "a reference to a block outlives it, and reads what has its place now", "tier/tiertest/tiertest.go: leases"},
	{"ovg-project/kvcached#362", "a place that is used again is found under the hash of what it held", "tier/slots_test.go: TestTable"},
	{"sgl-project/sglang#23392", "a copy that was given up goes on into memory of somebody else", "tier/tiertest/life.go: abandoned"},
	{"vllm-project/vllm#54363", "a block of another length is loaded", "tier/tiertest/tiertest.go: memoryOfTheCaller"},
	{"vllm-project/vllm#50754, third part", "a block that was copied in part is found in the cache", "tier/tiertest/life.go: fails"},
	{"vllm-project/vllm#45704, third part", "the event that a store of blocks has to wait for is not handed on", "cuda/engine_test.go: TestEngineInThisProcess"},
	{"no one report, second part", "host memory that a dead device may write to is used again", "tier/tiertest/life.go: lost"},
	{"LMCache/LMCache#4830, second part", "memory goes while the device is closed", "gputest/life.go: closeInFlight"},
}

// TestBugs: the list names tests that are there.
func TestBugs(t *testing.T) {
	for _, b := range bugs {
		file, name, _ := strings.Cut(b.test, ": ")
		text, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Errorf("%s: %v", b.where, err)
		} else if !strings.Contains(string(text), "\nfunc "+name+"(") {
			t.Errorf("%s (%s): %s has no %s", b.where, b.what, file, name)
		}
	}
}
