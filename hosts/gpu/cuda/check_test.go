//go:build cgo && linux

package cuda

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/kvrt/kvrt/hosts/gpu"
	"github.com/kvrt/kvrt/hosts/gpu/gputest"
	"github.com/kvrt/kvrt/hosts/gpu/tier/tiertest"
)

// checkEnv chooses what the tests named TestGPU run on: "real" for the GPU of this machine,
// "fake" for a rehearsal. scripts/gpu-check sets it.
const checkEnv = "KVRT_GPU_CHECK"

// noGPU is the exit code that says that there is none. A test that panics ends with 2.
const noGPU = 77

// check looks for the GPU that the tests are to run on. It returns an exit code, or -1 to go
// on.
func check() int {
	switch os.Getenv(checkEnv) {
	case "", "fake":
		return -1
	}
	d, err := Open(Config{Library: os.Getenv("KVRT_LIBCUDA")})
	var absent *AbsentError
	switch {
	case errors.As(err, &absent):
		fmt.Println("no GPU here. Tried:")
		for _, line := range absent.Tried {
			fmt.Println("  " + line)
		}
		return noGPU
	case err != nil:
		fmt.Println(err)
		return 1
	}
	i := d.Info()
	fmt.Printf("%s, %d MiB: %s\n", i.Name, i.Memory>>20, i.Detail)
	if err := d.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return -1
}

// checked opens what is to be checked.
func checked(t *testing.T) *Device {
	t.Helper()
	var cfg Config
	switch os.Getenv(checkEnv) {
	case "":
		t.Skip("scripts/gpu-check runs this")
	case "fake":
		modern.Do("reset 13000")
		modern.Do("delay 0")
		cfg.Library = modern.Path
	default:
		cfg.Library = os.Getenv("KVRT_LIBCUDA")
	}
	d, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d.(*Device)
}

// TestGPUSuite runs the suite on the machine's GPU.
func TestGPUSuite(t *testing.T) {
	if os.Getenv(checkEnv) == "" {
		t.Skip("scripts/gpu-check runs this")
	}
	gputest.Run(t, gputest.Harness{
		Open:  func(t *testing.T) gpu.Driver { return checked(t) },
		Large: os.Getenv(checkEnv) != "fake",
	})
}

// TestGPUTier moves blocks between a store, the machine's GPU and memory of a caller there.
// What needs faults of the driver's is tried on the fake one only.
func TestGPUTier(t *testing.T) {
	if os.Getenv(checkEnv) == "" {
		t.Skip("scripts/gpu-check runs this")
	}
	tiertest.Run(t, gputest.Harness{Open: func(t *testing.T) gpu.Driver { return checked(t) }})
}
