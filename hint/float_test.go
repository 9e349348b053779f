package hint_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/hint"
)

// halfWay spells the middle between a double and the next one, with all its digits.
func halfWay(f float64) string {
	a, b := new(big.Float).SetPrec(3000).SetFloat64(f), new(big.Float).SetPrec(3000).SetFloat64(math.Nextafter(f, 2*f))
	text := a.Add(a, b).Quo(a, big.NewFloat(2)).Text('e', 1200)
	digits, exponent, _ := strings.Cut(text, "e")
	return strings.TrimRight(digits, "0") + "e" + exponent
}

// cut shortens the digits of a number to n and its point, and puts more behind them.
func cut(text string, n int, more string) string {
	digits, exponent, _ := strings.Cut(text, "e")
	return digits[:n+1] + more + "e" + exponent
}

// readFloat holds that a number is read as strconv reads it.
func readFloat(t *testing.T, doc *hint.Document, text string) {
	t.Helper()
	base, n, err := doc.Append(nil, hint.FormatJSON, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	want, err := strconv.ParseFloat(text, 64)
	if err != nil {
		if n.Tag != abi.TagNumber || string(abi.Base(base).Bytes(n)) != text {
			t.Errorf("%s: %s, want it as text", text, show(base, n))
		}
	} else if n.Tag != abi.TagF64 || n.Val != math.Float64bits(want) {
		t.Errorf("%s: %s, want %v", text, show(base, n), want)
	}
	if err := abi.CheckTree(base, n); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

// TestLongFloats: numbers with many digits and at the limits are exact.
func TestLongFloats(t *testing.T) {
	var doc hint.Document
	for _, text := range []string{
		"1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "1.797693134862315807e308", "1.797693134862315808e308", "1.7976931348623158079372e308", "1.7976931348623158079373e308", "17976931348623157e292", "17976931348623159e292",
		"1.79769313486231580e+308", "1.797693134862315799999999999e+308", "1.797693134862315810e+308", "1.797693134862315809999999999e+308", "0.17976931348623159e309", "1e308", "9.99e307", "1e309", "1e400", "1e99999999999999999999", "1e-99999999999999999999",
		"2.2250738585072014e-308", "2.2250738585072011e-308", "2.225073858507202e-308", "2.225073858507201999999999e-308", "4.9e-324", "5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "2e-324", "9.99e-325", "1e-324", "1e-323", "1e-310",
		"0e999", "0.0e-999", "-0e999", "0.00000000000000000000000000000", "1" + strings.Repeat("0", 400) + ".5e-400", "0." + strings.Repeat("0", 400) + "1e400", "0." + strings.Repeat("0", 400) + "1e401", "0." + strings.Repeat("0", 400) + "17976931348623159e709",
		"9007199254740993.0", "9007199254740993.00000000000000", "9007199254740993.00000000000001", "9007199254740992.99999999999999", "9999999999999999999.9999", "9.9999999999999999999e22", "1.00000000000000000000001", "0.1000000000000000055511151231257827021181583404541015625",
		"123456789012345678901234567890.5", "0.00012345678901234567890123456789", "1E+0000000000000000000001", "1e-0000000000000000000001",
	} {
		readFloat(t, &doc, text)
		if text[0] != '-' {
			readFloat(t, &doc, "-"+text)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 600 {
		f := math.Abs(math.Float64frombits(r.Uint64()))
		switch i % 3 {
		case 1:
			f = math.Abs(r.NormFloat64() * 1e5)
		case 2:
			f = math.Float64frombits(r.Uint64() >> (12 + r.IntN(40))) // small ones
		}
		if f-f != 0 || f == 0 || f == math.MaxFloat64 {
			continue
		}
		text := halfWay(f)
		readFloat(t, &doc, text)
		for _, n := range []int{17, 18, 19, 20, 21, 40} {
			for _, more := range []string{"", "1", "9", "000001"} {
				if len(text) > 60 {
					readFloat(t, &doc, cut(text, n, more))
				}
			}
		}
		readFloat(t, &doc, fmt.Sprintf("%.*e", r.IntN(30), f))
		if f < 1e30 {
			readFloat(t, &doc, fmt.Sprintf("%.*f", 1+r.IntN(40), f))
		}
	}
}

// TestSlowFloats: few numbers take strconv long, whatever a body is filled with.
func TestSlowFloats(t *testing.T) {
	small := math.Float64frombits(math.Float64bits(1.2345e-300) | 1)
	for name, number := range map[string]string{
		"half way": cut(halfWay(small), 19, "1"), "all digits": halfWay(small), "subnormal": "5e-324", "nearly subnormal": "2.2e-308", "nearly infinite": "1.79769313486231580e308", "list": "[1,5e-324]",
	} {
		list := func(n int) string { return strings.Repeat(number+",", n-1) + number }
		var doc hint.Document
		out, root, err := doc.Append(nil, hint.FormatJSON, []byte("["+list(1024)+"]"))
		if err != nil || root.Len != 1024 {
			t.Errorf("%s: %v", name, err)
		}
		var bad *hint.MalformedError
		_, _, err = doc.Append(out[:0], hint.FormatJSON, []byte("["+list(4<<20/(len(number)+1)-1)+"]"))
		want := 1 + 1024*(len(number)+1) + strings.LastIndexByte(number, ',') + 1
		if !errors.As(err, &bad) || bad.Offset != want || !strings.Contains(bad.Msg, "more than 1024 numbers that are half way") {
			t.Errorf("%s: %v, want it at offset %d", name, err, want)
		}
		var f hint.Frame
		before := `{"x":[` + list(500) + `],"actions":[{"action_type":"t","payload":{"a":[` + list(500) + `],"b":[`
		if err := decode(t, &f, 0, []byte(before+list(24)+`]}}]}`), hint.Limits{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		err = decode(t, &f, 0, []byte(before+list(25)+`]}}]}`), hint.Limits{})
		want = len(before) + 24*(len(number)+1) + strings.LastIndexByte(number, ',') + 1
		if !errors.As(err, &bad) || bad.Offset != want {
			t.Errorf("%s: %v, want it at offset %d", name, err, want)
		}
	}
	// What is only long is not slow.
	for _, number := range []string{
		"0.1000000000000000055511151231257827021181583404541015625", "1.23456789012345678901234567890", "-123456789.12345678901234567890", "1.7976931348623157e+308", "2.2250738585072020e-308", "1e300", "0e400", "1e-400", "1e400",
		"0.3000000000000000000000000000000000000000000000000001",
	} {
		body := []byte(`{"actions":[{"action_type":"t","payload":{"a":[` + strings.Repeat(number+",", 20000) + `1]}}]}`)
		var f hint.Frame
		fill := func() {
			if err := f.Decode(hint.FormatJSON, body, hint.Limits{}); err != nil {
				t.Errorf("%s: %v", number, err)
			}
		}
		fill()
		if n := testing.AllocsPerRun(3, fill); n > 10 { // for 20,000 numbers
			t.Errorf("%s: %v allocations", number, n)
		}
	}
	// The place of a duplicate key is found by reading the map again.
	numbers := strings.Repeat("5e-324,", 1000)
	refused(t, hint.FormatJSON, `{"actions":[],"x":{"a":[`+numbers+`1],"a":1}}`, 24+len(numbers)+3, "duplicate key")
}
