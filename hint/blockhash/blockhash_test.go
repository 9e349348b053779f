package blockhash_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/kvrt/kvrt/hint/blockhash"
)

func TestVectors(t *testing.T) {
	tokens := []uint32{1, 2, 3, 4, 5, 6, 7, 8}
	for _, c := range []struct {
		name   string
		h      blockhash.Hasher
		tokens []uint32
		want   []uint64
	}{
		{"plain", blockhash.Hasher{BlockSize: 4}, tokens, []uint64{14643705804678351452, 16777012769546811212}},
		{"a block that is not full", blockhash.Hasher{BlockSize: 4}, tokens[:7], []uint64{14643705804678351452}},
		{"no block", blockhash.Hasher{BlockSize: 4}, tokens[:3], nil},
		{"no tokens", blockhash.Hasher{BlockSize: 4}, nil, nil},
		{"block size 0", blockhash.Hasher{}, tokens, nil},
		{"lora", blockhash.Hasher{BlockSize: 4, LoRA: "adapter-a"}, tokens[:4], []uint64{11381080598872079209}},
		{"namespace", blockhash.Hasher{BlockSize: 4, Namespace: "tenant-a"}, tokens[:4], []uint64{5738685477468498325}},
		{"both", blockhash.Hasher{BlockSize: 4, LoRA: "adapter-a", Namespace: "tenant-a"}, tokens[:4], []uint64{9967753091837871098}},
		{"eagle", blockhash.Hasher{BlockSize: 4, Eagle: true}, tokens[:5], []uint64{1914873892905420881}},
		{"eagle, the second block lacks one", blockhash.Hasher{BlockSize: 4, Eagle: true}, tokens, []uint64{1914873892905420881}},
		{"eagle, one block without the next token", blockhash.Hasher{BlockSize: 4, Eagle: true}, tokens[:4], nil},
		{"eagle without tokens", blockhash.Hasher{BlockSize: 4, Eagle: true}, nil, nil},
		{"largest tokens", blockhash.Hasher{BlockSize: 4}, []uint32{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, []uint64{12410542959481710713}},
	} {
		got := c.h.AppendLocal(nil, c.tokens, nil)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		if n := c.h.Blocks(len(c.tokens)); n != len(c.want) {
			t.Errorf("%s: %d blocks, want %d", c.name, n, len(c.want))
		}
	}
}

func TestSeed(t *testing.T) {
	for _, c := range []struct {
		lora, namespace string
		want            uint64
	}{{"", "", 1337}, {"adapter-a", "", 8842669519798868182}, {"", "tenant-a", 1948188790972764086}, {"adapter-a", "tenant-a", 10790858310771630931}} {
		h := blockhash.Hasher{LoRA: c.lora, Namespace: c.namespace}
		if got := h.Seed(); got != c.want {
			t.Errorf("seed of %q and %q: %d, want %d", c.lora, c.namespace, got, c.want)
		}
	}
}

func TestImages(t *testing.T) {
	h := blockhash.Hasher{BlockSize: 4}
	tokens := []uint32{1, 2, 3, 4}
	for _, c := range []struct {
		images [][]uint64
		want   uint64
	}{
		{nil, 14643705804678351452}, {[][]uint64{{}}, 14643705804678351452},
		{[][]uint64{{0x0123456789abcdef}}, 2142804768136187117},
		{[][]uint64{{9, 3}}, 8340657703143021008}, {[][]uint64{{3, 9}}, 8340657703143021008},
		{[][]uint64{{3, 3}}, 8229293695423887157}, {[][]uint64{{3}}, 4269719791911190783},
	} {
		before := make([][]uint64, len(c.images))
		for i := range before {
			before[i] = slices.Clone(c.images[i])
		}
		if got := h.AppendLocal(nil, tokens, c.images); len(got) != 1 || got[0] != c.want {
			t.Errorf("images %v: %d, want %d", c.images, got, c.want)
		}
		for i := range before {
			if !slices.Equal(before[i], c.images[i]) {
				t.Errorf("%v was changed to %v", before[i], c.images[i])
			}
		}
	}
	got := h.AppendLocal(nil, []uint32{1, 2, 3, 4, 1, 2, 3, 4}, [][]uint64{{3}})
	if want := []uint64{4269719791911190783, 14643705804678351452}; !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}

func TestObject(t *testing.T) {
	digest := "0123456789ABCDEF" + "000000000000000000000000000000000000000000000000"
	if got := blockhash.Object(digest); got != 0x0123456789abcdef {
		t.Errorf("%#x", got)
	}
	for _, id := range []string{"", "x", digest[:63], digest[:63] + "g"} {
		if got := blockhash.Object(id); got == 0x0123456789abcdef || got == 0 {
			t.Errorf("%q: %#x", id, got)
		}
	}
}

func TestSequence(t *testing.T) {
	local := []uint64{14643705804678351452, 16777012769546811212}
	if got, want := blockhash.AppendSequence(nil, local), []uint64{14643705804678351452, 4945711292740353085}; !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
	if got := blockhash.AppendSequence(nil, nil); got != nil {
		t.Errorf("%d", got)
	}
	for _, v := range []uint64{0, 1, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		if got := blockhash.FromSigned(blockhash.ToSigned(v)); got != v {
			t.Errorf("%d, want %d", got, v)
		}
	}
	if blockhash.FromSigned(-1) != 1<<64-1 {
		t.Error("-1 is all bits")
	}
}

// TestOneHasher holds that a hasher remembers nothing from one prompt to the next, and
// that a longer prompt only adds hashes.
func TestOneHasher(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		tokens := make([]uint32, r.IntN(200))
		for i := range tokens {
			tokens[i] = r.Uint32()
		}
		h := blockhash.Hasher{BlockSize: 1 + r.IntN(20), Eagle: r.IntN(2) == 0}
		all := h.AppendLocal(nil, tokens, nil)
		part := h.AppendLocal(nil, tokens[:len(tokens)/2], nil)
		if !slices.Equal(all[:len(part)], part) {
			t.Fatalf("%v: %d tokens give other hashes than %d", h, len(tokens), len(tokens)/2)
		}
		fresh := blockhash.Hasher{BlockSize: h.BlockSize, Eagle: h.Eagle}
		if again := fresh.AppendLocal(nil, tokens, nil); !reflect.DeepEqual(again, all) {
			t.Fatal("two hashers differ")
		}
	}
}

func TestAllocs(t *testing.T) {
	h := blockhash.Hasher{BlockSize: 16, LoRA: "a", Namespace: "b"}
	tokens := make([]uint32, 16384)
	images := [][]uint64{{4, 3, 2, 1}}
	var local, seq []uint64
	if n := testing.AllocsPerRun(10, func() {
		local = h.AppendLocal(local[:0], tokens, images)
		seq = blockhash.AppendSequence(seq[:0], local)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPrompt16k(b *testing.B) {
	h := blockhash.Hasher{BlockSize: 16}
	tokens := make([]uint32, 16384)
	var local, seq []uint64
	b.ReportAllocs()
	b.SetBytes(4 * int64(len(tokens)))
	for b.Loop() {
		local = h.AppendLocal(local[:0], tokens, nil)
		seq = blockhash.AppendSequence(seq[:0], local)
	}
}
