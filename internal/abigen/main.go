// Command abigen writes everything that is generated from the ABI table:
// constants for Go and for each SDK language, and the tables of the specification.
//
//	go run ./internal/abigen          write the files
//	go run ./internal/abigen -check   fail when a file differs
//
// Run it from the repository's root.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kvrt/kvrt/abi"
)

// outputs maps a path in the repository to the generator of its content.
func outputs(t abi.Table) map[string]func(abi.Table) ([]byte, error) {
	return map[string]func(abi.Table) ([]byte, error){
		"abi/const_gen.go": goConstants,
	}
}

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	root := flag.String("root", ".", "root of the repository")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "abigen:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	t := abi.Contract()
	for name, gen := range outputs(t) {
		want, err := gen(t)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		path := filepath.Join(root, name)
		have, err := os.ReadFile(path)
		if err == nil && bytes.Equal(have, want) {
			continue
		}
		if check {
			return fmt.Errorf("%s is not what the table says: run go run ./internal/abigen", name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			return err
		}
	}
	return nil
}
