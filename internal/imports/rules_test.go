package imports

// Patterns, in lists parted by spaces: "a/b" is that package, "a/b/..." it and
// all below, and "*" stands for one folder name. The word "own" stands for all
// packages under the folder that the rule's own pattern names.

// rules is the map of the repository: what a package may import of this module,
// in files of any build tag, tests aside. The first line that matches counts; a
// package without a line is an error.
var rules = []struct{ pkgs, may, why string }{
	{"abi/...", "own", "the contract is read alone: by SDKs, by generators, by hosts in other languages"},
	{"hint/...", "abi own", "what is carried knows nothing of who runs it"},
	{"runtime/admit/...", "abi own", "admission is usable without the runtime"},
	{"runtime", "abi hint runtime/admit", "the runtime knows no engine and no host subsystem, only its own small interfaces"},
	{"runtime/hosttest", "abi abi/vectors hint runtime", "the exam of a capability reads the vectors"},
	{"runtime/*/...", "abi hint runtime runtime/admit own", "an engine implements the runtime's interfaces and knows no host subsystem"},
	{"hosts/*/...", "abi hint runtime internal/crc32c own", "a capability knows no engine and no other capability; what it needs of one is an interface of its own"},
	{"kvevents/...", "abi hint hosts/session own", "ingest feeds the lineage index through its update interface, in the words of abi and hint, and needs nothing else"},
	{"fleet/peers/...", "abi hint hosts/fetch/... hosts/store own", "hints, blocks and peers together: what the daemon runs, and what an embedder may run"},
	{"fleet/staging/...", "abi hint hosts/fetch/... hosts/gpu/... own", "blocks of peers and a device together"},
	{"fleet/...", "abi hint hosts/session hosts/worker kvevents own", "workers, feeds and lineage together: what the daemon runs, and what an embedder may run"},
	{"config/...", "abi hint runtime runtime/admit hosts/... kvevents own", "configuration fills the Config structs of those below and chooses no engine"},
	{"server/...", "abi hint runtime runtime/admit hosts/... kvevents fleet config own", "the daemon runs what it is handed; cmd chooses the engine and the guests"},
	{"policies", "", "embedded files only, so that whoever embeds them links nothing"},
	{"policies/*/...", "abi sdk/go/... own", "a guest written in Go sees what a third party's guest sees"},
	{"sdk/assemblyscript", "", "an embedded file only"},
	{"sdk/go/guesttest", "abi hint sdk/go/...", "what tests a guest ends up in no guest, and writes frames as a host does"},
	{"sdk/go/...", "abi own", "all that an SDK brings ends up in every guest"},
	{"sdk/tck/...", "abi hint runtime runtime/admit hosts/... sdk/go/... own", "the kit may import what it judges; the engine that it judges on is handed to it"},
	{"cmd/...", "...", "the one place that wires"},
	{"examples/...", "...", "an example may show anything"},
	{"internal/crc32c", "", "a checksum knows nothing"},
	{"internal/*/...", "abi abi/vectors own", "helpers of the build and of tests, below everything"},
}

// modules says who may import which other module, tests aside.
var modules = []struct{ module, importers, why string }{
	{"github.com/tetratelabs/wazero", "runtime/wazero/...", "an engine's library stays behind the runtime's interfaces"},
	{"github.com/bytecodealliance/wasmtime-go", "runtime/wasmtime/...", "an engine's library stays behind the runtime's interfaces"},
	{"gopkg.in/yaml.v3", "config/...", "one strict reader, with line numbers, serves the daemon and every verb"},
	{"github.com/prometheus", "server/...", "below the daemon, counters are read through an Observer"},
	{"github.com/spf13", "cmd/...", "flags and verbs are the command's own business"},
	{"github.com/santhosh-tekuri/jsonschema", "cmd/...", "the runtime is handed a function that holds a guest's parameters against the schema in its manifest"},
	{"google.golang.org/protobuf", "hint/lower/...", "one engine takes hints as protobuf; nothing else here speaks it"},
	{"github.com/zeebo/xxh3", "hint/blockhash/...", "one place knows how blocks are hashed"},
	{"github.com/go-zeromq/zmq4", "kvevents/...", "sockets of serving engines are the ingest's business"},
	{"golang.org/x/sys", "hint internal/crc32c runtime/wazero/... hosts/... config/... server/... cmd/...", "system calls: limits of the compile child, shared memory, peers of a socket, access to a folder; and what the processor can"},
}

// links lists what a program must not link through these packages, however far
// down: an embedder takes the runtime, one engine and the hosts that it wants.
var links = []struct{ pkgs, banned, why string }{
	{"abi/... hint/... runtime/... hosts/... kvevents/... fleet/...", "net/http", "an embedder serves its own HTTP, or none"},
	{"abi/... hint/... runtime/... hosts/... kvevents/... fleet/...", "github.com/prometheus/...", "an embedder has its own metrics registry"},
	{"abi/... hint/... runtime/... hosts/... kvevents/... fleet/...", "gopkg.in/yaml.v3", "an embedder has its own configuration"},
	{"abi/... hint/... runtime/... hosts/... kvevents/... fleet/...", "github.com/spf13/...", "a library has no flags"},
	{"abi/... hint hint/blockhash runtime/... hosts/... kvevents/... fleet/...", "google.golang.org/protobuf/...", "only who lowers for SGLang needs it, and then only its wire primitives"},
	{"hint/lower/...", "google.golang.org/protobuf/proto", "the one message is written without reflection"},
	{"runtime runtime/admit/... hosts/... kvevents/... fleet/... config/... server/...", "github.com/tetratelabs/wazero/...", "the engine is chosen by cmd"},
}

// long lists files between softLines and hardLines that are better whole.
var long = map[string]string{}

// withInit lists packages that may have an init function: a Go guest is a
// library whose main never runs, so what it registers, it registers in init.
const withInit = "policies/*/... sdk/go/... examples/..."
