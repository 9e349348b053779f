package vectors

import (
	"bytes"
	"os/exec"
	"reflect"
	"testing"

	"github.com/kvrt/kvrt/abi"
)

// check verifies a vector's bytes as a host would, or a guest's test.
func check(record string, b []byte) error {
	switch record {
	case "Node":
		return abi.CheckTree(b, abi.GetNode(b, 0))
	case "InitFrame":
		return abi.CheckInit(b)
	case "ParseFrame":
		return abi.CheckParse(b)
	case "Action":
		return abi.CheckAction(b)
	case "EnvelopeFrame":
		return abi.CheckEnvelope(b)
	case "ContextFrame":
		return abi.CheckContext(b)
	case "Answer":
		_, err := abi.CheckAnswer(b)
		return err
	}
	panic("no check for " + record)
}

func TestVectors(t *testing.T) {
	r := Reader{Table: abi.Contract(), Seen: map[string]bool{}}
	for _, name := range Files() {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, v := range f.Vectors {
			if names[v.Name] || v.Value != nil == (v.Error != "") {
				t.Errorf("%s/%s: named twice, or not exactly one of value and error", name, v.Name)
			}
			names[v.Name] = true
			t.Run(name+"/"+v.Name, func(t *testing.T) {
				// A heap copy of exactly this size, so that a read past the end is caught.
				b := bytes.Clone(v.Hex)
				err := check(f.Record, b[:len(b):len(b)])
				if v.Error != "" {
					if err == nil {
						t.Errorf("accepted, although %s", v.Error)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				got, err := r.Value(f.Record, b)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, v.Value) {
					t.Errorf("got  %v\nwant %v", got, v.Value)
				}
			})
		}
	}
	calls, err := Calls()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		for _, run := range c.After {
			if run.Record == "" {
				continue
			}
			got, err := r.Value(run.Record, run.Hex)
			if err != nil || !reflect.DeepEqual(got, run.Value) {
				t.Errorf("%s: %v\ngot  %v\nwant %v", c.Name, err, got, run.Value)
			}
		}
	}
	for _, rec := range r.Table.Records {
		if !r.Seen[rec.Name] {
			t.Errorf("record %s has no vector", rec.Name)
		}
	}
}

// A return value is judged with the functions that a host has for it.
func TestResults(t *testing.T) {
	results, err := Results()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, v := range results {
		seen[v.Export] = true
		if v.Export == "kvrt_arena" {
			off, size, ok := abi.ArenaResult(int64(v.Returns), v.Asked, uint64(v.Memory.Size))
			if ok == v.Verdict.Refused || ok && (off != v.Verdict.Buffer.At || size != v.Verdict.Buffer.Size) {
				t.Errorf("%s: %d, %d, %v", v.Name, off, size, ok)
			}
			continue
		}
		got := judge(v)
		want := v.Verdict
		if got.Status != abi.Status(want.Status) || got.Reason != abi.Reason(want.Reason) || !bytes.Equal(got.Body, want.Body) ||
			want.Detail != "" && string(got.Detail) != want.Detail || got.Features != abi.Feature(want.Features) {
			t.Errorf("%s: got %+v, want %+v", v.Name, got, want)
		}
	}
	for _, e := range abi.Contract().Exports {
		if (e.Need == "role" || e.Name == "kvrt_init" || e.Name == "kvrt_arena") && !seen[e.Name] {
			t.Errorf("export %s has no vector", e.Name)
		}
	}
}

// judge is what a host does with a role's return value.
func judge(v Result) abi.Answer {
	fault := abi.Answer{Status: abi.StatusRejected, Reason: abi.ReasonHandlerError}
	res, ok := abi.SplitResult(int64(v.Returns))
	switch {
	case !ok || res.Len > 0 && !res.Fits(uint64(v.Memory.Size), abi.Span{Off: v.Frame.At, Len: v.Frame.Len}):
		return fault
	case res.Reason != abi.ReasonNone:
		return abi.Answer{Status: abi.StatusRejected, Reason: res.Reason}
	}
	a := abi.Answer{Status: abi.StatusAccepted}
	if res.Len > 0 {
		var err error
		if a, err = abi.CheckAnswer(v.Memory.Bytes()[res.Off : res.Off+res.Len]); err != nil {
			return fault
		}
	}
	if a.Status == abi.StatusRejected {
		return a
	}
	var err error
	switch {
	case v.Export == "kvrt_init":
		a.Features &= abi.FeatureRawPayload
	case v.Export == "kvrt_handle" && a.Body != nil:
		err = abi.CheckAction(a.Body)
	case v.Export == "kvrt_parse" || v.Export == "kvrt_formulate" && a.Body != nil:
		err = abi.CheckEnvelope(a.Body)
	}
	if err != nil {
		return fault
	}
	return a
}

// Every host function that may no longer change has vectors, and they fit its signature.
func TestCalls(t *testing.T) {
	calls, err := Calls()
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]abi.Function{}
	for _, f := range abi.Contract().Functions {
		table[f.Module+"."+f.Name] = f
	}
	seen := map[string]bool{}
	for _, c := range calls {
		f, ok := table[c.Module+"."+c.Function]
		switch {
		case !ok || f.Draft:
			t.Errorf("%s: %s.%s is not in the table, or a draft", c.Name, c.Module, c.Function)
		case len(c.Args) != len(f.Params) || (c.Result == nil) != (f.Result == 0):
			t.Errorf("%s: want the signature of %s.%s", c.Name, c.Module, c.Function)
		case len(c.Effects) > 0 && (!f.Effect || *c.Result < 0):
			t.Errorf("%s: an effect that is none", c.Name)
		}
		seen[c.Module+"."+c.Function] = true
		mem := c.Memory.Bytes()
		for _, r := range c.After {
			if int(r.At)+len(r.Hex) > len(mem) {
				t.Errorf("%s: outside the memory", c.Name)
			}
		}
	}
	for name, f := range table {
		if !f.Draft && !seen[name] {
			t.Errorf("host function %s has no vector", name)
		}
	}
}

func TestFilesAreWhatMakeWrites(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	if out, err := exec.Command(python, "make.py", "--check").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
