// Command benchtable reads the output of go test -bench from standard input and
// prints one table of figures against floors and budgets.
//
// A missed budget is shown, not an error: figures of shared machines drift. It
// exits 1 when a benchmark of the table failed or has no figure; with -partial,
// for a run of some benchmarks, rows without a figure are left out.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
)

//go:embed budgets.txt
var budgets string

func main() {
	partial := flag.Bool("partial", false, "leave out rows that were not measured")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, budgets, *partial); err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, budgets string, partial bool) error {
	rows, err := readRows(budgets)
	if err != nil {
		return err
	}
	res, err := readResults(in)
	if err != nil {
		return err
	}
	complete, err := write(out, rows, res, partial)
	switch {
	case err != nil:
		return err
	case len(res.failed) > 0:
		return fmt.Errorf("go test failed: %s", res.failed[0])
	case !complete:
		return fmt.Errorf("some rows were not measured")
	}
	return nil
}
