// Command guestbuild finishes a guest that a compiler wrote: it drops every custom
// section (names, producers, target features: they differ between machines and do
// nothing) and appends the manifest.
//
//	go run ./internal/guestbuild -manifest manifest.json -o NAME.wasm compiled.wasm
//
// The manifest is checked, and written without insignificant white space.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/kvrt/kvrt/abi"
)

func main() {
	manifest := flag.String("manifest", "manifest.json", "the guest's manifest")
	out := flag.String("o", "", "file to write")
	flag.Parse()
	if flag.NArg() != 1 || *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*manifest, flag.Arg(0), *out); err != nil {
		fmt.Fprintln(os.Stderr, "guestbuild:", err)
		os.Exit(1)
	}
}

func run(manifest, in, out string) error {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	module, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	if module, err = finish(module, text); err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	return os.WriteFile(out, module, 0o644)
}

// finish strips the module and appends the manifest.
func finish(module, manifest []byte) ([]byte, error) {
	stripped, err := strip(module)
	if err != nil {
		return nil, err
	}
	return abi.AppendManifest(stripped, manifest)
}

const header = "\x00asm\x01\x00\x00\x00"

// strip copies a core module without its custom sections.
func strip(module []byte) ([]byte, error) {
	if !bytes.HasPrefix(module, []byte(header)) {
		return nil, errors.New("not a core WebAssembly module")
	}
	out := []byte(header)
	for at := len(header); at < len(module); {
		size, n := binary.Uvarint(module[at+1:])
		if n <= 0 || size > uint64(len(module)-at-1-n) {
			return nil, fmt.Errorf("the section at byte %d is cut short", at)
		}
		end := at + 1 + n + int(size)
		if module[at] != 0 {
			out = append(out, module[at:end]...)
		}
		at = end
	}
	return out, nil
}
