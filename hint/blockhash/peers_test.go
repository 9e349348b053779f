package blockhash_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/hint/blockhash"
	"github.com/kvrt/kvrt/internal/pyenv"
)

// prompt is one case for another implementation. Hashes travel as text, since JSON
// readers take numbers of 64 bits for doubles.
type prompt struct {
	BlockSize int      `json:"block_size"`
	LoRA      string   `json:"lora"`
	Namespace string   `json:"namespace"`
	Eagle     bool     `json:"eagle"`
	Tokens    []uint32 `json:"tokens"`

	Images [][]json.Number `json:"images"`
}

// withXXHash is the published rule on top of the xxhash package.
const withXXHash = `
import json, struct, sys, xxhash
M = (1 << 64) - 1
def x(b, seed=0): return xxhash.xxh3_64_intdigest(b, seed & M)
for p in json.load(sys.stdin):
    seed = 1337
    if p["lora"]: seed += x(p["lora"].encode())
    if p["namespace"]: seed += x(p["namespace"].encode(), 1)
    n, t, local = p["block_size"], p["tokens"], []
    w = n + 1 if p["eagle"] else n
    i = 0
    while i * n + w <= len(t):
        b = struct.pack("<%dI" % w, *t[i*n:i*n+w])
        if i < len(p["images"]): b += b"".join(struct.pack("<Q", v) for v in sorted(p["images"][i]))
        local.append(x(b, seed)); i += 1
    seq = []
    for v in local: seq.append(v if not seq else x(struct.pack("<QQ", seq[-1], v), 1337))
    print(*local, "|", *seq)
`

// withDynamo is Dynamo's own library. It has no function for sequence hashes.
const withDynamo = `
import json, sys
from dynamo._core import compute_block_hash_for_seq as f
for p in json.load(sys.stdin):
    mm = [{"mm_objects": [{"mm_hash": v, "offsets": []} for v in b]} for b in p["images"]]
    print(*f(p["tokens"], p["block_size"], block_mm_infos=mm or None, lora_name=p["lora"] or None, is_eagle=p["eagle"], cache_namespace=p["namespace"] or None), "|")
`

func prompts(n int) []prompt {
	r := rand.New(rand.NewPCG(7, 11))
	names := []string{"", "a", "adapter-a", "é日😀", strings.Repeat("long/", 100)}
	out := make([]prompt, n)
	for i := range out {
		p := prompt{BlockSize: 1 + r.IntN(1+r.IntN(130)), LoRA: names[r.IntN(5)], Namespace: names[r.IntN(5)], Eagle: r.IntN(3) == 0, Tokens: make([]uint32, r.IntN(700)), Images: [][]json.Number{}}
		for j := range p.Tokens {
			p.Tokens[j] = r.Uint32() >> r.IntN(32)
		}
		h := blockhash.Hasher{BlockSize: p.BlockSize, Eagle: p.Eagle}
		if blocks := h.Blocks(len(p.Tokens)); blocks > 0 && r.IntN(2) == 0 {
			for range 1 + r.IntN(blocks) {
				block := []json.Number{}
				for range r.IntN(4) {
					text, _ := json.Marshal(r.Uint64() >> (63 * r.IntN(2)))
					block = append(block, json.Number(text))
				}
				p.Images = append(p.Images, block)
			}
		}
		out[i] = p
	}
	return out
}

func compare(t *testing.T, python, program string, sequence bool) {
	cases := prompts(300)
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", program)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(cases) {
		t.Fatalf("%d answers to %d prompts", len(lines), len(cases))
	}
	blocks := 0
	for i, p := range cases {
		h := blockhash.Hasher{BlockSize: p.BlockSize, LoRA: p.LoRA, Namespace: p.Namespace, Eagle: p.Eagle}
		images := make([][]uint64, len(p.Images))
		for j, block := range p.Images {
			for _, text := range block {
				var v uint64
				if err := json.Unmarshal([]byte(text), &v); err != nil {
					t.Fatal(err)
				}
				images[j] = append(images[j], v)
			}
		}
		local := h.AppendLocal(nil, p.Tokens, images)
		blocks += len(local)
		theirs, chain, _ := strings.Cut(lines[i], "|")
		if want := words(t, theirs); !slices.Equal(local, want) {
			t.Fatalf("%+v: %d, want %d", p, local, want)
		}
		if want := words(t, chain); sequence && !slices.Equal(blockhash.AppendSequence(nil, local), want) {
			t.Fatalf("%+v: sequence differs from %d", p, want)
		}
	}
	if blocks < 1000 {
		t.Errorf("only %d blocks were compared", blocks)
	}
}

func words(t *testing.T, text string) []uint64 {
	var out []uint64
	for _, w := range strings.Fields(text) {
		var v uint64
		if err := json.Unmarshal([]byte(w), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func TestAgainstXXHash(t *testing.T) { compare(t, pyenv.Python(t), withXXHash, true) }

// TestAgainstDynamo runs where scripts/dynamo.sh has brought Dynamo's library.
func TestAgainstDynamo(t *testing.T) {
	python := filepath.Join("..", "..", "bin", "dynamo", "bin", "python3")
	if _, err := os.Stat(python); err != nil {
		t.Skip("no Dynamo library in bin/dynamo: scripts/dynamo.sh brings it")
	}
	compare(t, python, withDynamo, false)
}
