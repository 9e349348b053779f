// A guest as the stock Go toolchain builds one: maps, strings, floating-point
// text, interfaces, garbage.
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o guest.wasm guest.go
package main

import (
	"sort"
	"strconv"
	"strings"
)

type shape interface{ area() float64 }

type square struct{ side float64 }

type circle struct{ radius float64 }

func (s square) area() float64 { return s.side * s.side }
func (c circle) area() float64 { return c.radius * c.radius * 3.25 }

//go:wasmexport run
func run(n int32) int64 {
	var sum int64
	for i := range n {
		var shapes []shape
		for k := range i % 9 {
			shapes = append(shapes, square{float64(k) / 3}, circle{float64(i)})
		}
		count := map[string]int{}
		for at, s := range shapes {
			text := strconv.FormatFloat(s.area(), 'g', -1, 64) + strings.Repeat("x", at%7)
			back, err := strconv.ParseFloat(strings.TrimRight(text, "x"), 64)
			if err != nil {
				panic(err)
			}
			count[text] += at + int(back)
		}
		keys := make([]string, 0, len(count))
		for k := range count {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			sum = sum*31 + int64(count[k]) + int64(len(k))
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
