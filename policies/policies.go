// Package policies embeds the guests that ship with kvrt, each built from the sources
// in its folder. A folder with a NAME/NAME.wasm is a guest; nothing is registered.
package policies

import (
	"embed"
	"path"
	"strings"
)

//go:embed */*.wasm
var modules embed.FS

// Guests lists the names of the embedded guests, sorted.
func Guests() []string {
	var names []string
	entries, _ := modules.ReadDir(".") // sorted; an embedded folder is always readable
	for _, e := range entries {
		if _, ok := Module(e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	return names
}

// Module returns the module of an embedded guest. The caller must not change it.
func Module(name string) (wasm []byte, ok bool) {
	if strings.Contains(name, "/") {
		return nil, false
	}
	wasm, err := modules.ReadFile(path.Join(name, name+".wasm"))
	return wasm, err == nil
}
