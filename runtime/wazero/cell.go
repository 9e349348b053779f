package wazero

import (
	"reflect"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
)

// cell finds the word in which an instance's code keeps a global, or nil where the engine
// keeps it otherwise: then whoever asked goes through g. Each dispatch reads and writes
// the fuel five times, at 1 ns instead of 8. The engine's records are private, so nothing
// is believed of them: the word is the only one among the instance's own that shows what
// g is set to. It lies in a slice of Go's heap, which the pointer keeps, so that it may be
// used whatever is closed. Should the code of some other version count elsewhere all the
// same, its counter stays 0 and every call is out of fuel.
func cell(mod api.Module, g api.MutableGlobal) (found *uint64) {
	defer func() {
		if recover() != nil { // reflection: the records have another shape
			found = nil
		}
	}()
	opaque := reflect.ValueOf(mod).Elem().FieldByName("Engine").Elem().Elem().FieldByName("opaque")
	if opaque.Kind() != reflect.Slice || opaque.Type().Elem().Kind() != reflect.Uint8 || uintptr(opaque.UnsafePointer())%8 != 0 {
		return nil
	}
	words := unsafe.Slice((*uint64)(opaque.UnsafePointer()), opaque.Len()/8)
	was := g.Get()
	defer g.Set(was)
	const first, second = 0x6b7672742d6e6f77, 0x1d0e5a4c93b2f681
	g.Set(first)
	for i := range words {
		if words[i] != first {
			continue
		}
		if found != nil {
			return nil
		}
		found = &words[i]
	}
	if found == nil {
		return nil
	}
	if g.Set(second); *found != second {
		return nil
	}
	if *found = first; g.Get() != first {
		return nil
	}
	return found
}
