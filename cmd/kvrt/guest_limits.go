package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvrt/kvrt/server"
)

// limitFlags are the limits of a guest as flags. They are called as in kvrt.yaml, with
// dashes.
type limitFlags struct {
	limits server.GuestLimits
	sizes  []sizeFlag
}

// sizeFlag is a limit that is a size.
type sizeFlag struct {
	name, text string
	most       uint64
	set        func(n uint64)
}

func (f *limitFlags) add(fs *pflag.FlagSet) {
	l := &f.limits
	fs.Uint64Var(&l.Fuel, "fuel", 0, "instructions per call")
	fs.Uint64Var(&l.ParseFuel, "parse-fuel", 0, "instructions per call of a parser (default --fuel)")
	fs.Uint64Var(&l.FormulateFuel, "formulate-fuel", 0, "instructions per call of a policy (default --fuel)")
	fs.Uint64Var(&l.InitFuel, "init-fuel", 0, "instructions for the start of an instance")
	fs.Uint64Var(&l.IdleFuel, "idle-fuel", 0, "instructions per call of kvrt_idle")
	fs.Uint64Var(&l.IdleCalls, "idle-calls", 0, "calls of an instance after which kvrt_idle is due")
	fs.IntVar(&l.Instances, "instances", 0, "how many calls run side by side")
	fs.Uint32Var(&l.TableElements, "table-elements", 0, "entries of all tables of one instance")
	fs.IntVar(&l.Actions, "actions", 0, "most actions in the answer of a parser or a policy")
	fs.IntVar(&l.LogLines, "log-lines", 0, "most log lines of one call")
	fs.Uint64Var(&l.HostCalls, "host-calls", 0, "most calls of host functions in one call")
	f.sizes = []sizeFlag{
		{name: "memory", most: 4 << 30, set: func(n uint64) { l.Memory = n }},
		{name: "idle-bytes", most: 1 << 40, set: func(n uint64) { l.IdleBytes = n }},
		{name: "call-depth", most: 16 << 20, set: func(n uint64) { l.CallDepth = uint32(n) }},
		{name: "output-bytes", most: 1 << 30, set: func(n uint64) { l.OutputBytes = uint32(n) }},
		{name: "log-bytes", most: 1 << 30, set: func(n uint64) { l.LogBytes = int(n) }},
		{name: "host-bytes", most: 1 << 40, set: func(n uint64) { l.HostBytes = n }},
	}
	for i, usage := range []string{
		"linear memory of one instance, a `size` such as 16MiB",
		"`size` of frames and answers after which kvrt_idle is due",
		"what calls within a call may take, a `size` such as 256KiB",
		"longest answer of a call, a `size` such as 4MiB",
		"largest `size` of the log lines of one call",
		"largest `size` that host functions copy for one call",
	} {
		fs.StringVar(&f.sizes[i].text, f.sizes[i].name, "", usage)
	}
}

// request is what was asked for, or nil when no limit was.
func (f *limitFlags) request(cmd *cobra.Command) (*server.GuestLimits, error) {
	asked := f.limits != server.GuestLimits{}
	for i := range f.sizes {
		s := &f.sizes[i]
		if !cmd.Flags().Changed(s.name) {
			continue
		}
		n, ok := parseSize(s.text)
		if !ok {
			return nil, &usageError{cmd.CommandPath(), fmt.Sprintf("--%s %q: want a size such as 16777216, 64KiB or 16MiB", s.name, s.text)}
		}
		if n > s.most {
			return nil, &usageError{cmd.CommandPath(), fmt.Sprintf("--%s %s: %d bytes at most", s.name, s.text, s.most)}
		}
		s.set(n)
		asked = true
	}
	if f.limits.Instances < 0 || f.limits.Actions < 0 || f.limits.LogLines < 0 {
		return nil, &usageError{cmd.CommandPath(), "a limit is less than zero: leave it out for the default"}
	}
	if !asked {
		return nil, nil
	}
	l := f.limits
	return &l, nil
}
