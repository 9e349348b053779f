// A guest as the stock Go toolchain builds one: maps, strings, floating-point
// text, reflection, garbage.
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o guest.wasm guest.go
package main

import (
	"encoding/json"
	"sort"
	"strings"
)

type record struct {
	A int
	B string
	C []float64
}

//go:wasmexport run
func run(n int32) int64 {
	var sum int64
	for i := range n {
		text, err := json.Marshal(record{int(i), strings.Repeat("x", int(i%7)), []float64{1.5, float64(i) / 3}})
		if err != nil {
			panic(err)
		}
		var back record
		if err := json.Unmarshal(text, &back); err != nil {
			panic(err)
		}
		count := map[string]int{}
		for at, c := range string(text) {
			count[string(c)] += at
		}
		keys := make([]string, 0, len(count))
		for k := range count {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			sum = sum*31 + int64(count[k]) + int64(back.A)
		}
	}
	return sum
}

//go:wasmexport recurse
func recurse(n int32) int32 {
	if n == 0 {
		return 0
	}
	return recurse(n-1) + 1
}

func main() {}
