// Command abigen writes everything that is generated from the ABI table: constants
// for Go, a module for each SDK language, the tables and quotations of the
// specification, and the golden listing abi.txt.
//
//	go run ./internal/abigen           write the files
//	go run ./internal/abigen -check    fail when a file differs
//	go run ./internal/abigen -freeze   keep the listing of a release as abi/vX.Y.txt
//
// Run it from the repository's root. It refuses to drop or change a line of abi.txt
// that is not a draft: before the release of a version such a line is first deleted
// by hand, after it never.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kvrt/kvrt/abi"
)

// output is a file and the generator of its content.
type output struct {
	path string
	gen  func(t abi.Table) ([]byte, error)
}

func outputs(root string) []output {
	return []output{
		{"abi/const_gen.go", goConstants},
		{"abi/abi.txt", listing},
		{"abi/SPEC.md", func(t abi.Table) ([]byte, error) { return spec(root, t) }},
		{"sdk/c/include/kvrt_abi.h", cHeader},
		{"sdk/rust/src/abi.rs", rustModule},
		{"sdk/assemblyscript/assembly/abi.ts", assemblyScript},
		{"sdk/zig/src/abi.zig", zigModule},
	}
}

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	frozen := flag.Bool("freeze", false, "keep the listing of a release")
	root := flag.String("root", ".", "root of the repository")
	flag.Parse()
	err := run(*root, *check)
	if err == nil && *frozen {
		err = freeze(*root, abi.Contract())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "abigen:", err)
		os.Exit(1)
	}
}

// run writes the files that differ from what the table says, or reports them all.
func run(root string, check bool) error {
	t := abi.Contract()
	if err := grows(root, t); err != nil {
		return err
	}
	var errs []error
	for _, o := range outputs(root) {
		if err := o.update(root, t, check); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (o output) update(root string, t abi.Table, check bool) error {
	want, err := o.gen(t)
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	path := filepath.Join(root, o.path)
	have, err := os.ReadFile(path)
	if err == nil && bytes.Equal(have, want) {
		return nil
	}
	if check {
		return fmt.Errorf("%s is not what the table says: run go run ./internal/abigen", o.path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, want, 0o644)
}
