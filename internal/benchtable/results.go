package main

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/kvrt/kvrt/"

// A key names the runs of one benchmark: PACKAGE.BenchmarkName/sub@CORES.
type key struct {
	name  string
	procs int // 0 when a row names no count of cores
}

// results holds what `go test -bench` printed, by benchmark and unit, in the
// order of the runs.
type results struct {
	runs   map[key]map[string][]float64
	failed []string // lines that tell of a failed benchmark or package
}

// readResults reads the output of any number of go test runs.
func readResults(r io.Reader) (*results, error) {
	res := &results{runs: make(map[key]map[string][]float64)}
	pkg := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = strings.TrimPrefix(name, module)
			continue
		}
		if strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL") || strings.HasPrefix(line, "panic:") {
			res.failed = append(res.failed, line)
			continue
		}
		if strings.HasPrefix(line, "Benchmark") {
			res.add(pkg, strings.Fields(line))
		}
	}
	return res, lines.Err()
}

// add takes one line: name, iterations, then pairs of value and unit. A line
// that a benchmark's own output broke up is passed over; its row then shows as
// not measured.
func (res *results) add(pkg string, fields []string) {
	if len(fields) < 4 || len(fields)%2 != 0 {
		return
	}
	if _, err := strconv.ParseUint(fields[1], 10, 64); err != nil {
		return
	}
	name, procs := splitProcs(fields[0])
	k := key{pkg + "." + name, procs}
	if res.runs[k] == nil {
		res.runs[k] = make(map[string][]float64)
	}
	for i := 2; i < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			continue
		}
		unit := fields[i+1]
		res.runs[k][unit] = append(res.runs[k][unit], v)
	}
}

// splitProcs takes off the "-2" that go test appends on more than one core.
// Names of sub-benchmarks therefore end in "hashes=1024", not "hashes-1024".
func splitProcs(name string) (string, int) {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if procs, err := strconv.Atoi(name[i+1:]); err == nil && procs > 0 {
			return name[:i], procs
		}
	}
	return name, 1
}

// median finds the middle figure of a benchmark's runs. Without a count of
// cores it takes the run on the most.
func (res *results) median(k key, unit string) (float64, bool) {
	if k.procs == 0 {
		for have := range res.runs {
			if have.name == k.name {
				k.procs = max(k.procs, have.procs)
			}
		}
	}
	values := slices.Sorted(slices.Values(res.runs[k][unit]))
	n := len(values)
	if n == 0 {
		return 0, false
	}
	return (values[(n-1)/2] + values[n/2]) / 2, true
}
