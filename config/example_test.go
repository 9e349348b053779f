package config_test

import (
	"fmt"

	"github.com/kvrt/kvrt/config"
)

func ExampleParse() {
	_, err := config.Parse("kvrt.yaml", []byte(`
guests:
  - name: kv-fetch
    module: embedded:kv-fetch
    grants: [kvrt_fech]
    limits: {memroy: 1MiB, init_fuel: 5ms}
`))
	fmt.Println(err)
	// Output:
	// kvrt.yaml:5:14: guests[0].grants[0]: unknown capability "kvrt_fech" (did you mean "kvrt_fetch"?)
	// kvrt.yaml:6:14: guests[0].limits.memroy: unknown key (did you mean "memory"?)
	// kvrt.yaml:6:39: guests[0].limits.init_fuel: must be an integer, not the string "5ms"
}
