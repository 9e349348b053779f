package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
)

func newBuild() *cobra.Command {
	var manifest, out, format string
	cmd := &cobra.Command{
		Use:   "build MODULE",
		Short: "Append a manifest to a module and check the result",
		Long: `build makes a guest out of a module that a compiler wrote: it appends the manifest,
or puts it in the place of the one that is there, and holds the result against every
rule that a module by itself can break. All else in the module stays as it is, byte
for byte. Nothing of it is run; verify does that.

Without -o the result is written beside MODULE, as NAME.wasm after the name in the
manifest. MODULE itself is overwritten only when -o names it. -o - is standard output.
The file appears complete or not at all.

A result that breaks a rule is not written: every broken rule is a line on standard
error, and the code is 4.`,
		Example: `  kvrt build target/guest.wasm --manifest manifest.json
  kvrt build guest.wasm --manifest manifest.json -o dist/my-guest.wasm
  kvrt build guest.wasm -o guest.wasm
  kvrt build guest.wasm -o - | kvrt inspect /dev/stdin`,
		Args: arguments("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wasm, err := readModule(args[0])
			if err != nil {
				return &inputError{err}
			}
			text, err := os.ReadFile(manifest)
			if err != nil {
				return &inputError{err}
			}
			guest, info, err := finishGuest(args[0], wasm, text)
			if err != nil {
				return err
			}
			name, chosen := out, cmd.Flags().Changed("output")
			if !chosen {
				name = filepath.Join(filepath.Dir(args[0]), info.Manifest.Name+".wasm")
			}
			b := built{Name: info.Manifest.Name, Version: info.Manifest.Version, File: name, Size: len(guest), SHA256: info.SHA256}
			if name == "-" {
				if isTerminal(cmd.OutOrStdout()) {
					return &usageError{cmd.CommandPath(), "a module is binary and standard output is a terminal: redirect it, or name a file with -o"}
				}
				if _, err := cmd.OutOrStdout().Write(guest); err != nil {
					return err
				}
				return b.write(cmd.ErrOrStderr(), format)
			}
			if !chosen && sameFile(name, args[0]) {
				return &usageError{cmd.CommandPath(), "the result would overwrite " + args[0] + ": name it with -o if it shall, or name another file"}
			}
			if err := writeFile(name, guest); err != nil {
				return err
			}
			return b.write(cmd.OutOrStdout(), format)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&manifest, "manifest", "m", "manifest.json", "`file` with the guest's manifest")
	fs.StringVarP(&out, "output", "o", "", "write the guest to this `file`; - is standard output")
	choose(cmd, &format, "format", "", "form of what is told about the result", "text", "json")
	return cmd
}

// built is what build tells.
type built struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	File    string `json:"file"`
	Size    int    `json:"size"`
	SHA256  string `json:"sha256"`
}

func (b *built) write(w io.Writer, format string) error {
	if format == "json" {
		return writeJSON(w, b)
	}
	_, err := fmt.Fprintf(w, "%s %s: %s, %d bytes, sha256 %s\n", b.Name, cell(b.Version), b.File, b.Size, b.SHA256)
	return err
}

// finishGuest appends the manifest and checks what comes out. The error is a
// *runtime.LoadError with every rule that the manifest and the module break.
func finishGuest(name string, wasm, manifest []byte) ([]byte, *runtime.Info, error) {
	guest, err := abi.AppendManifest(wasm, manifest)
	if err == nil {
		info, err := runtime.Admit(name, guest)
		return guest, info, err
	}
	refused := &runtime.LoadError{Guest: name}
	if _, err := abi.ParseManifest(manifest); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") { // one problem each
			refused.Problems = append(refused.Problems, runtime.Problem{Rule: manifestRule, Item: abi.ManifestSection, Msg: line})
		}
	}
	var module *runtime.LoadError
	if _, found := runtime.Admit(name, wasm); errors.As(found, &module) {
		for _, p := range module.Problems {
			if p.Rule != manifestRule { // of the one that is being replaced
				refused.Problems = append(refused.Problems, p)
			}
		}
	}
	if len(refused.Problems) == 0 {
		return nil, nil, err
	}
	return nil, nil, refused
}

// manifestRule is the rule that a manifest breaks.
const manifestRule = "abi/manifest"

// sameFile tells whether both are there and are one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// writeFile writes a file that is there as a whole or not at all. What was there keeps
// its permissions.
func writeFile(name string, content []byte) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // the link stays
	}
	mode := os.FileMode(0o644)
	if old, err := os.Stat(name); err == nil {
		if !old.Mode().IsRegular() {
			return os.WriteFile(name, content, mode) // a device or pipe is written to
		}
		mode = old.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(content); err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}
