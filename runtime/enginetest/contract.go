package enginetest

import (
	"bytes"
	"context"
	"math/bits"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/admit"
)

// compile: an engine has a name, and keeps nothing of the bytes that it is given.
func (x *exam) compile() {
	if name := x.engine.Name(); name == "" || strings.ContainsAny(name, " \n") {
		x.Errorf("the engine's name is %q, want one word", name)
	}
	wasm, _ := x.metered("calls")
	given := bytes.Clone(wasm)
	m, err := x.engine.Compile(context.Background(), given, runtime.CompileOptions{MemoryPages: pages})
	if err != nil {
		x.Fatalf("%v", err)
	}
	if !bytes.Equal(given, wasm) {
		x.Errorf("compiling changed the module's bytes")
	}
	clear(given)
	g := x.open(m)
	g.want(runtime.ExportParse, 1, 1, 2)
	g.close()
	x.closeModule(m)
}

// refuse: what is no module, or needs what it was not given, gives no instance.
func (x *exam) refuse() {
	calls, _ := x.metered("calls")
	h, info := x.metered("hosts")
	all := (&hosts{}).granted(info.Source)
	other := func(change func(*runtime.HostFunction)) []runtime.HostModule {
		fs := (&hosts{}).functions()
		change(&fs[1])
		return []runtime.HostModule{offer{"test", fs}}
	}
	for _, c := range []struct {
		name  string
		wasm  []byte
		hosts []runtime.HostModule
	}{
		{"nothing", nil, nil},
		{"text", []byte("(module)"), nil},
		{"a header alone", calls[:7], nil},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), nil},
		{"half a module", calls[:len(calls)/2], nil},
		{"a module with a byte after its end", append(bytes.Clone(calls), 0x0b), nil},
		{"shared memory", []byte("\x00asm\x01\x00\x00\x00\x05\x04\x01\x03\x01\x01"), nil},
		{"64-bit memory", []byte("\x00asm\x01\x00\x00\x00\x05\x04\x01\x05\x01\x01"), nil},
		{"two memories", []byte("\x00asm\x01\x00\x00\x00\x05\x05\x02\x00\x01\x00\x01"), nil},
		{"a structure type", []byte("\x00asm\x01\x00\x00\x00\x01\x03\x01\x5f\x00"), nil},
		{"a constant that is computed", []byte("\x00asm\x01\x00\x00\x00\x06\x09\x01\x7f\x00\x41\x01\x41\x02\x6a\x0b"), nil},
		{"a tail call", body("\x12\x00"), nil},
		{"a call by reference", body("\x00\x14\x00"), nil},
		{"an exception block", body("\x1f\x40\x00\x0b"), nil},
		{"a fence", body("\xfe\x03\x00"), nil},
		{"wide arithmetic", body("\x42\x00\x42\x00\x42\x00\x42\x00\xfc\x13\x1a\x1a"), nil},
		{"a relaxed vector instruction", body(strings.Repeat("\xfd\x0c"+strings.Repeat("\x00", 16), 2) + "\xfd\x80\x02\x1a"), nil},
		{"imports without a host", h, nil},
		{"imports of another host", h, []runtime.HostModule{offer{"other", (&hosts{}).functions()}}},
		{"an import that the host lacks", h, []runtime.HostModule{offer{"test", (&hosts{}).functions()[1:]}}},
		{"an import with other parameters", h, other(func(f *runtime.HostFunction) { f.Params = []abi.ValType{abi.I32, abi.I32, abi.I32} })},
		{"an import with other results", h, other(func(f *runtime.HostFunction) { f.Results = nil })},
	} {
		if x.accepts(c.wasm, runtime.CompileOptions{Hosts: c.hosts, MemoryPages: pages}) {
			x.Errorf("%s: an instance was made of it", c.name)
		}
	}
	if !x.accepts(body("\x01"), runtime.CompileOptions{MemoryPages: pages}) {
		x.Errorf("a function that does nothing was refused")
	}
	if !x.accepts(h, runtime.CompileOptions{Hosts: all, MemoryPages: pages}) {
		x.Errorf("a module with all that it imports was refused")
	}
}

// body is a module of one function () -> (), of less than 100 bytes.
func body(code string) []byte {
	n := byte(len(code))
	return append([]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a"), append([]byte{n + 4, 1, n + 2, 0}, code+"\x0b"...)...)
}

// accepts tells whether an instance can be made of a module.
func (x *exam) accepts(wasm []byte, opts runtime.CompileOptions) bool {
	m, err := x.engine.Compile(context.Background(), wasm, opts)
	if err != nil {
		return false
	}
	in, err := m.Instantiate(context.Background())
	if err == nil {
		err = in.Close()
	}
	x.closeModule(m)
	return err == nil
}

// exports: Has knows what there is, and nothing runs before it is called.
func (x *exam) exports() {
	all, few := x.start("calls", nil), x.start("few", nil)
	for f := range runtime.NumExports {
		if !all.Has(f) {
			x.Errorf("an export %s was not found", runtime.ExportNames()[f])
		}
		want := f == runtime.ExportArena || f == runtime.ExportInit || f == runtime.ExportHandle
		if few.Has(f) != want {
			x.Errorf("export %s: Has is %t where it is %t", runtime.ExportNames()[f], !want, want)
		}
	}
	for starts := range uint64(3) {
		all.want(runtime.ExportArena, starts<<32, 0)
		all.want(runtime.ExportInitialize, 0)
	}
	for range 3 {
		if out := all.run(runtime.ExportIdle, plenty); out.trap != nil {
			x.Errorf("kvrt_idle: %v", out.trap)
		}
	}
	if all.Memory()[0] != 3 {
		x.Errorf("kvrt_idle ran %d times, not 3", all.Memory()[0])
	}
}

// arguments: each reaches its parameter, cut to its width, and all bits of a result come
// back.
func (x *exam) arguments() {
	g := x.start("calls", nil)
	const dirty = 0xabcdef12 << 32
	g.want(runtime.ExportArena, 0xfffffff0, dirty|0xfffffff0)
	g.want(runtime.ExportInit, 1<<64-12, dirty|0xfffffffb, dirty|7)
	g.want(runtime.ExportParse, 1, dirty|1, 2)
	g.want(runtime.ExportParse, 0, 2, dirty|1)
	g.want(runtime.ExportFormulate, 0x9000000080000000, dirty|0x80000000, dirty|0x90000000)
	g.want(runtime.ExportHandle, 1|2<<21|3<<42, 1, 2, 3)
	const ones = 0xffffffff
	g.want(runtime.ExportHandle, ones^ones<<21^bits.RotateLeft64(ones, 42), dirty|ones, dirty|ones, dirty|ones)
}

// memory: the host's view and the guest's are one, before and after it grows.
func (x *exam) memory() {
	g := x.start("memory", nil)
	mem := g.Memory()
	if len(mem) != 1<<16 {
		x.Fatalf("a view of %d bytes of one page", len(mem))
	}
	if string(mem[8:12]) != "kvrt" || mem[0] != 0 || mem[12] != 0 {
		x.Errorf("the data of the module is %q", mem[:16])
	}
	mem[100] = 55
	g.want(runtime.ExportHandle, 55, 0, 100)
	g.want(runtime.ExportHandle, 0, 1, 65535, 0x1ff)
	if mem := g.Memory(); mem[65535] != 0xff {
		x.Errorf("what the guest stored is not in the view")
	}
	g.want(runtime.ExportArena, 1, 0)
	g.want(runtime.ExportArena, 1, 2)
	g.want(runtime.ExportHandle, 3, 2)
	if mem = g.Memory(); len(mem) != 3<<16 {
		x.Fatalf("a view of %d bytes of three pages", len(mem))
	}
	if mem[100] != 55 || mem[65535] != 0xff || string(mem[8:12]) != "kvrt" {
		x.Errorf("growing lost what was there")
	}
	if i := bytes.IndexFunc(mem[1<<16:], func(r rune) bool { return r != 0 }); i >= 0 {
		x.Errorf("byte %d of the new pages is not 0", i)
	}
	mem[3<<16-1] = 77
	g.want(runtime.ExportHandle, 77, 0, 3<<16-1)
	g.want(runtime.ExportHandle, 0, 1, 2<<16, 66)
	if mem[2<<16] != 66 {
		x.Errorf("the view is not of the grown memory")
	}
}

// memoryLimit: a memory grows to the limit of Compile and not beyond, whatever the
// module says.
func (x *exam) memoryLimit() {
	grow := func(name string, g *guest, limit uint64) {
		g.want(runtime.ExportArena, 1<<64-1, limit)
		g.want(runtime.ExportArena, 1<<64-1, 0xffffffff)
		g.want(runtime.ExportArena, 1, limit-1)
		g.want(runtime.ExportArena, 1<<64-1, 1)
		g.want(runtime.ExportArena, limit, 0)
		if n := len(g.Memory()); n != int(limit)<<16 {
			x.Errorf("%s: a view of %d bytes at a limit of %d pages", name, n, limit)
		}
		g.want(runtime.ExportHandle, 0, 0, limit<<16-1)
	}
	grow("rewritten", x.start("memory", nil), pages)

	for _, limit := range []uint64{1, 3} {
		m, err := x.engine.Compile(context.Background(), x.source("memory"), runtime.CompileOptions{MemoryPages: uint32(limit)})
		if err != nil {
			x.Fatalf("%v", err)
		}
		x.Cleanup(func() { x.closeModule(m) })
		grow("without a maximum", x.instance(m), limit)
	}
	// 16 pages at first, of 15 that are allowed
	wasm, _, err := admit.Rewrite([]byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x10\x07\x0a\x01\x06memory\x02\x00"), admit.Options{MemoryPages: 16})
	if err != nil {
		x.Fatalf("%v", err)
	}
	if x.accepts(wasm, runtime.CompileOptions{MemoryPages: 15}) {
		x.Errorf("a memory of 16 pages was made where 15 are allowed")
	}
	if !x.accepts(wasm, runtime.CompileOptions{MemoryPages: 16}) {
		x.Errorf("a memory of 16 pages was refused where 16 are allowed")
	}
}
