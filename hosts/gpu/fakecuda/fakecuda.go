//go:build cgo && linux

package fakecuda

/*
#include <dlfcn.h>
#include <stdlib.h>

typedef void (*control)(const char *, char *, size_t);
static void call(void *f, const char *line, char *out, size_t size) { ((control)f)(line, out, size); }
*/
import "C"

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"unsafe"
)

//go:embed lib/driver.c
var driverC []byte

//go:embed lib/copy.c
var copyC []byte

//go:embed lib/fake.h
var fakeH []byte

// Build compiles the library into a folder, with the C compiler of cgo and flags of the
// caller's, as -DOLD or -fsanitize=address, and returns its path.
func Build(dir, name string, flags ...string) (string, error) {
	for file, text := range map[string][]byte{"driver.c": driverC, "copy.c": copyC, "fake.h": fakeH} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			return "", err
		}
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	path := filepath.Join(dir, name)
	args := append([]string{"-shared", "-fPIC", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-pthread", "-o", path}, flags...)
	if out, err := exec.Command(cc, append(args, filepath.Join(dir, "driver.c"), filepath.Join(dir, "copy.c"))...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the fake driver: %w\n%s", err, out)
	}
	return path, nil
}

// Fake is a library that was built, in this process.
type Fake struct {
	Path    string
	control unsafe.Pointer
}

// Open loads a library, as package cuda will do again.
func Open(path string) (*Fake, error) {
	name, symbol := C.CString(path), C.CString("fake_control")
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(symbol))
	lib := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if lib == nil {
		return nil, fmt.Errorf("%s cannot be loaded", path)
	}
	f := &Fake{Path: path, control: C.dlsym(lib, symbol)}
	if f.control == nil {
		return nil, fmt.Errorf("%s is no fake driver", path)
	}
	return f, nil
}

// Do has the library obey a line (see fake_control in lib/driver.c) and returns its answer.
func (f *Fake) Do(format string, args ...any) string {
	line := C.CString(fmt.Sprintf(format, args...))
	defer C.free(unsafe.Pointer(line))
	var out [4096]C.char
	C.call(f.control, line, &out[0], C.size_t(len(out)))
	return C.GoString(&out[0])
}
