package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A row is one line of the budgets file.
type row struct {
	what    string
	test    string // the test that holds the budget; the row then has no figure
	figure  source
	floor   source // name "" when there is none
	budgets []budget
}

// A source says where a figure comes from.
type source struct {
	key
	unit   string
	factor float64
}

// A budget is one bound: kind, and the bound in the figure's unit.
type budget struct {
	kind  string
	bound float64
	text  string
}

// kinds lists the budgets, with whether each needs a floor.
var kinds = []struct {
	kind       string
	needsFloor bool
}{
	{"floor+", true},
	{"ratio<=", true},
	{"ratio>=", true},
	{"speedup>=", true},
	{"abs<=", false},
	{"allocs<=", false},
}

// readRows reads a budgets file; its format stands at the top of budgets.txt.
func readRows(text string) ([]row, error) {
	var rows []row
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		r, err := readRow(line)
		if err != nil {
			return nil, fmt.Errorf("budgets line %d: %w", i+1, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func readRow(line string) (row, error) {
	cells := strings.Split(line, "|")
	if len(cells) != 4 {
		return row{}, fmt.Errorf("%d cells, not what | figure | floor | budgets", len(cells))
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	r := row{what: cells[0]}
	var isTest bool
	if r.test, isTest = strings.CutPrefix(cells[1], "test "); isTest {
		return r, nil
	}
	r.test = ""
	var err error
	if r.figure, err = readSource(cells[1]); err != nil {
		return row{}, err
	}
	if cells[2] != "none" {
		if r.floor, err = readSource(cells[2]); err != nil {
			return row{}, err
		}
	}
	for text := range strings.SplitSeq(cells[3], ",") {
		b, err := readBudget(strings.TrimSpace(text), r.floor.name != "")
		if err != nil {
			return row{}, err
		}
		r.budgets = append(r.budgets, b)
	}
	return r, nil
}

// readSource reads "16 * PACKAGE.BenchmarkName/sub@2 unit".
func readSource(text string) (source, error) {
	s := source{unit: "ns/op", factor: 1}
	if factor, rest, ok := strings.Cut(text, " * "); ok {
		var err error
		if s.factor, err = strconv.ParseFloat(strings.TrimSpace(factor), 64); err != nil {
			return source{}, fmt.Errorf("factor %q is no number", factor)
		}
		text = rest
	}
	words := strings.Fields(text)
	switch len(words) {
	case 2:
		s.unit = words[1]
	case 1:
	default:
		return source{}, fmt.Errorf("%q: want PACKAGE.BenchmarkName, with a unit or without", text)
	}
	name, procs, ok := strings.Cut(words[0], "@")
	if ok {
		var err error
		if s.procs, err = strconv.Atoi(procs); err != nil || s.procs < 1 {
			return source{}, fmt.Errorf("%q: %q is no count of cores", text, procs)
		}
	}
	if !strings.Contains(name, ".Benchmark") {
		return source{}, fmt.Errorf("%q: want PACKAGE.BenchmarkName", text)
	}
	s.name = name
	return s, nil
}

func readBudget(text string, hasFloor bool) (budget, error) {
	for _, k := range kinds {
		number, ok := strings.CutPrefix(text, k.kind)
		if !ok {
			continue
		}
		if k.needsFloor && !hasFloor {
			return budget{}, fmt.Errorf("budget %q needs a floor", text)
		}
		bound, err := readNumber(number)
		if err != nil {
			return budget{}, fmt.Errorf("budget %q: %w", text, err)
		}
		return budget{k.kind, bound, text}, nil
	}
	return budget{}, fmt.Errorf("budget %q is none of floor+N, ratio<=X, ratio>=X, speedup>=X, abs<=N, allocs<=N", text)
}

// readNumber reads a plain number, or a time in nanoseconds.
func readNumber(text string) (float64, error) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, nil
	}
	d, err := time.ParseDuration(text)
	return float64(d), err
}
