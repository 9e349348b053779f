//go:build !(cgo && linux)

package cuda

import (
	"github.com/kvrt/kvrt/hosts/gpu"
)

// Open says that this build has no CUDA.
func Open(Config) (gpu.Driver, error) {
	return nil, &AbsentError{[]string{"this program was built without cgo, or not for Linux"}}
}
