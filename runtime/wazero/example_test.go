package wazero_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kvrt/kvrt/hosts/log"
	"github.com/kvrt/kvrt/policies"
	"github.com/kvrt/kvrt/runtime"
	"github.com/kvrt/kvrt/runtime/wazero"
)

// guest loads a built-in guest and says so.
func guest(engine runtime.Engine) {
	ctx := context.Background()
	rt, err := runtime.New(runtime.Config{Engine: engine, Hosts: []runtime.HostModule{log.Module{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close(ctx)
	wasm, _ := policies.Module("router-hint")
	if err := rt.Load(ctx, runtime.GuestSpec{Name: "router-hint", Module: wasm, Grants: []string{"kvrt_log"}}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rt.Guests()[0].Spec.Name, "is loaded")
}

// A program that embeds the runtime is its own child: the hook stands first in main.
//
//	func main() {
//		if wazero.RunChild(wazero.Child{}) { // this process was started to compile a guest
//			return
//		}
//		...
//	}
func Example() {
	self, err := os.Executable() // here the program knows that it calls RunChild
	if err != nil {
		fmt.Println(err)
		return
	}
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	guest(wazero.New(wazero.Config{Compiler: &wazero.Compiler{Program: self, Dir: filepath.Join(folder, "cache")}}))
	// Output: router-hint is loaded
}

// Where main has no hook and no other program can be named, guests are interpreted:
// nothing is compiled, so nothing can keep a compiler busy.
func Example_interpreter() {
	guest(wazero.New(wazero.Config{Interpreter: true}))
	// Output: router-hint is loaded
}

// Or those whose digest the operator trusts are compiled in this process, and only the
// rest is interpreted.
func Example_trusted() {
	trusted := map[string]bool{}
	for _, name := range policies.Guests() {
		wasm, _ := policies.Module(name)
		info, err := runtime.Inspect(name, wasm)
		if err != nil {
			fmt.Println(err)
			return
		}
		trusted[info.SHA256] = true
	}
	guest(wazero.New(wazero.Config{Interpreter: true, Trusted: func(sha256 string) bool { return trusted[sha256] }}))
	// Output: router-hint is loaded
}

// A child can also do a task of the program's own with a guest, under the same limits:
// here Work, which RunChild was given, answers as many letters as the task says.
func ExampleCompiler_Do() {
	self, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := (&wazero.Compiler{Program: self}).Do(context.Background(), []byte("answer 3"))
	fmt.Printf("%s %v\n", answer, err)
	// Output: aaa <nil>
}
