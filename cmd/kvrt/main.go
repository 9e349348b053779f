// Command kvrt runs guests on KV-cache hints: as a daemon, or one envelope at a time.
// There is one file per verb; wire.go puts engine, hosts, guests and configuration
// together; exit.go says which error ends with which code.
package main

import (
	"os"

	"github.com/kvrt/kvrt/runtime/wazero"
)

// version is set by the linker, from git describe.
var version string

func main() {
	if wazero.RunChild(child()) { // this process was started to compile, try or verify a guest
		return
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
