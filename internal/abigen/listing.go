package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

// listing writes abi.txt: one line for each thing that a guest can rely on. Lines
// that begin with "draft" may change.
func listing(t abi.Table) ([]byte, error) {
	var p page
	for _, e := range t.Exports {
		p.line("export %s %s %s", e.Name, exportSignature(e), e.Need)
	}
	for _, e := range t.Enums {
		kind := "enum"
		if e.Flags {
			kind = "flags"
		}
		p.line("%s %s u%d", kind, e.Name, e.Bits)
		for _, v := range e.Values {
			p.line("%s %s %d %s %q", kind, e.Name, v.Value, v.Name, v.Text)
		}
	}
	for _, r := range t.Records {
		p.line("record %s %d bytes", r.Name, r.Size)
		for _, f := range r.Fields {
			p.line("record %s %d %s %s", r.Name, f.Off, f.Name, f.Type)
		}
	}
	for _, f := range t.Functions {
		line := fmt.Sprintf("function %s.%s %s fuel %s", f.Module, f.Name, named(f), cost(f))
		if f.Effect {
			line += " effect"
		}
		if f.Draft {
			line = "draft " + line
		}
		p.line("%s", line)
	}
	for _, f := range t.Stubs {
		p.line("stub %s.%s %s fuel %s", f.Module, f.Name, unnamed(f), cost(f))
	}
	for _, l := range t.Limits {
		p.line("limit %s %d %s", l.Name, l.Value, l.Unit)
	}
	return p.Bytes(), nil
}

// lost returns the lines of old, drafts aside, that new does not have.
func lost(old, new []byte) []string {
	have := map[string]bool{}
	for line := range lines(new) {
		have[line] = true
	}
	var out []string
	for line := range lines(old) {
		if !have[line] && !strings.HasPrefix(line, "draft ") {
			out = append(out, line)
		}
	}
	return out
}

// lines yields the lines of a listing that are neither empty nor a comment.
func lines(b []byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			if line := s.Text(); line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}

// grows fails when a stable line of abi.txt as it lies there, or of a released
// listing, is not in what the table says.
func grows(root string, t abi.Table) error {
	now, err := listing(t)
	if err != nil {
		return err
	}
	released, err := filepath.Glob(filepath.Join(root, "abi", "v*.txt"))
	if err != nil {
		return err
	}
	sort.Strings(released)
	for _, path := range append(released, filepath.Join(root, "abi", "abi.txt")) {
		old, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		if gone := lost(old, now); len(gone) > 0 {
			return fmt.Errorf("version %d only grows, but the table no longer has these lines of %s:\n\t%s",
				abi.Major, path, strings.Join(gone, "\n\t"))
		}
	}
	return nil
}

// freeze keeps the listing of a release. A released listing is never written again.
func freeze(root string, t abi.Table) error {
	now, err := listing(t)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "abi", fmt.Sprintf("v%d.%d.txt", abi.Major, abi.Minor))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("a listing is frozen once: %w", err)
	}
	defer f.Close()
	fmt.Fprintf(f, "# The ABI as version %d.%d released it. Later versions have every line that is not a draft.\n", abi.Major, abi.Minor)
	for line := range lines(now) {
		fmt.Fprintln(f, line)
	}
	return f.Close()
}
