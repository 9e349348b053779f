package main

import (
	"fmt"
	"regexp"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/abi"
)

// build is what this binary was made of.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // of git; empty when not known
	Modified bool   `json:"modified"` // the working tree differed from it
	ABI      string `json:"abi"`
	Engine   string `json:"engine"`
	Second   string `json:"second_engine"` // what there is to know of it
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of kvrt, the ABI and the engine",
		Long: `version prints the version of the module, the git revision, the version of the
guest ABI, the Wasm engine, the second engine that verify compares it with where one is
built in, and the platform.`,
		Example: `  kvrt version
  kvrt version -o json
  kvrt version -o json | jq -r .abi`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if output == "json" {
				return writeJSON(cmd.OutOrStdout(), b)
			}
			revision := b.Revision
			if revision == "" {
				revision = "unknown"
			} else if b.Modified {
				revision += " (modified)"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kvrt      %s\nrevision  %s\nabi       %s\nengine    %s\nsecond    %s\ngo        %s\nplatform  %s/%s\n",
				b.Version, revision, b.ABI, b.Engine, b.Second, b.Go, b.OS, b.Arch)
			return err
		},
	}
	choose(cmd, &output, "output", "o", "form of the output", "text", "json")
	return cmd
}

// described is what git describe writes: the hash alone, or behind a tag.
var described = regexp.MustCompile(`^(?:.*-g)?([0-9a-f]{7,40})(-dirty)?$`)

func thisBuild() build {
	b := build{
		Version: version, ABI: fmt.Sprintf("%d.%d", abi.Major, abi.Minor), Engine: engineName + " (version unknown)", Second: secondAbout,
		Go: goruntime.Version(), OS: goruntime.GOOS, Arch: goruntime.GOARCH,
	}
	if m := described.FindStringSubmatch(version); m != nil {
		b.Revision, b.Modified = m[1], m[2] != ""
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == engineModule {
			b.Engine = engineName + " " + d.Version
		}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
