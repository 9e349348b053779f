package host

import (
	"testing"

	"github.com/kvrt/kvrt/abi"
)

// TestAppendClaims: claims lie as the ABI says, one behind the other, and what is unused is 0.
func TestAppendClaims(t *testing.T) {
	claims := []Claim{{1, 2, 3, 1 << 40}, {From: 4, To: ToEnd}}
	b := AppendClaims([]byte{}, claims)
	if len(b) != 2*abi.SizeStoreClaim {
		t.Fatalf("%d bytes", len(b))
	}
	for i, want := range claims {
		at := b[i*abi.SizeStoreClaim:]
		got := Claim{abi.U32(at, abi.OffStoreClaimFrom), abi.U32(at, abi.OffStoreClaimTo), abi.U32(at, abi.OffStoreClaimPriority), abi.U64(at, abi.OffStoreClaimTTLMs)}
		if got != want || abi.U32(at, abi.OffStoreClaimZero) != 0 {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
