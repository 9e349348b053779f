package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A judgement is one row with its figures.
type judgement struct {
	row
	fig, flo, allocs float64
	hasAllocs        bool
	missing          []string // benchmarks without a figure
}

func judge(r row, res *results) judgement {
	j := judgement{row: r}
	if r.test != "" {
		return j
	}
	get := func(s source) float64 {
		v, ok := res.median(s.key, s.unit)
		if !ok && !slices.Contains(j.missing, s.name) {
			j.missing = append(j.missing, s.name)
		}
		return v * s.factor
	}
	j.fig = get(r.figure)
	if r.floor.name != "" {
		j.flo = get(r.floor)
	}
	j.allocs, j.hasAllocs = res.median(r.figure.key, "allocs/op")
	return j
}

// missed says which budgets the figures miss, and by how much.
func (j *judgement) missed() []string {
	var out []string
	for _, b := range j.budgets {
		var over float64 // above 0 when missed
		text := ""
		switch b.kind {
		case "floor+":
			over = j.fig - j.flo - b.bound
			text = amount(over, j.figure.unit)
		case "abs<=":
			over = j.fig - b.bound
			text = amount(over, j.figure.unit)
		case "ratio<=":
			over = j.fig/j.flo/b.bound - 1
			text = percent(over)
		case "ratio>=":
			over = 1 - j.fig/j.flo/b.bound
			text = percent(over)
		case "speedup>=":
			over = 1 - j.flo/j.fig/b.bound
			text = percent(over)
		case "allocs<=":
			over = j.allocs - b.bound
			text = fmt.Sprintf("%.0f", over)
			if !j.hasAllocs {
				over, text = 1, "an unknown count (no -benchmem)"
			}
		}
		if !(over <= 0) { // NaN, of 0/0, is a miss
			out = append(out, fmt.Sprintf("%s by %s", b.text, text))
		}
	}
	return out
}

func (j *judgement) verdict() string {
	switch missed := j.missed(); {
	case j.test != "":
		return "held by " + j.test
	case len(j.missing) > 0:
		return "not measured: " + strings.Join(j.missing, ", ")
	case len(missed) > 0:
		return "MISSED " + strings.Join(missed, ", ")
	}
	return "MET"
}

func (j *judgement) cells() []string {
	figure, floor, ratio, allocs := "-", "-", "-", "-"
	if j.test == "" && len(j.missing) == 0 {
		figure = amount(j.fig, j.figure.unit)
		if j.floor.name != "" {
			floor = amount(j.flo, j.floor.unit)
			ratio = fmt.Sprintf("%.2fx", j.fig/j.flo)
		}
		if j.hasAllocs {
			allocs = fmt.Sprintf("%.0f", j.allocs)
		}
	}
	budgets := make([]string, len(j.budgets))
	for i, b := range j.budgets {
		budgets[i] = b.text
	}
	return []string{j.what, floor, figure, ratio, allocs, strings.Join(budgets, ", "), j.verdict()}
}

// write prints the table and reports whether every row was measured. A partial
// run leaves out the rows that it did not measure.
func write(w io.Writer, rows []row, res *results, partial bool) (complete bool, err error) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "what\tfloor\tfigure\tratio\tallocs\tbudget\tverdict")
	complete = true
	for _, r := range rows {
		j := judge(r, res)
		if partial && (len(j.missing) > 0 || j.test != "") {
			continue
		}
		complete = complete && len(j.missing) == 0
		fmt.Fprintln(tab, strings.Join(j.cells(), "\t"))
	}
	return complete, tab.Flush()
}

// amount writes a value with its unit; ns/op becomes ns, us or ms.
func amount(v float64, unit string) string {
	switch {
	case unit != "ns/op" && v >= 1e4:
		return fmt.Sprintf("%.0f %s", v, unit)
	case unit != "ns/op":
		return fmt.Sprintf("%.4g %s", v, unit)
	case v >= 1e6:
		return fmt.Sprintf("%.4g ms", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.4g us", v/1e3)
	}
	return fmt.Sprintf("%.3g ns", v)
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
