package main

import (
	"bytes"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "source" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	const want = `a1: ACCEPTED
before: [FETCHABLE FETCHABLE FETCHABLE]
fetched: [SUCCESS SUCCESS FAILED] the source served a part of the blocks only: missing
after: [HIT HIT MISS]
block 11 is right: true
block 12 is right: true
outcome of m1[0]: partial, 2 of 3 blocks, not_found
`
	var got bytes.Buffer
	if err := run(t.Context(), &got, os.Args[0]); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got:\n%swant:\n%s", got.String(), want)
	}
}
