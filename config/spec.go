package config

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/kvrt/kvrt/abi"
)

const (
	wasmPage  Size = 64 << 10
	maxMemory Size = 4 << 30 // what a 32-bit memory can have
	maxSize   Size = math.MaxInt64

	minTTL = time.Millisecond
)

// spec is kvrt.yaml: every key, its shape and what it means. The order is that of the
// effective configuration.
func spec() object[Config] {
	return object[Config]{fields: []field[Config]{
		key("guests", "The Wasm guests to load. Without the key: the built-in ones; []: none.",
			func(c *Config) *[]Guest { return &c.Guests },
			many[Guest]{item: guest(), what: "name", identity: func(g *Guest) (string, string) { return id(g.Name), "name" }}),
		key("kv_hint_policy", "One policy, or a list of policies in the order in which they run.",
			func(c *Config) *[]Policy { return &c.KVHintPolicy },
			many[Policy]{item: policy(), what: "policy name", orOne: true, identity: policyIdentity}),
		key("formulate", "What policies may add to an envelope, and which fields of the context they can count on.",
			func(c *Config) *Formulate { return &c.Formulate }, formulate()),
		key("fetch", "The request hint store behind kv.fetch.",
			func(c *Config) *Fetch { return &c.Fetch }, fetch()),
		key("store", "The block store.",
			func(c *Config) *Store { return &c.Store }, blockStore()),
		key("gpu", "The device: what it is, and which blocks are kept there.",
			func(c *Config) *GPU { return &c.GPU }, device()),
		opt("peers", "Blocks to and from other kvrts, as kv.fetch hints ask for it. Without the key nothing is served and nothing fetched. It needs store.capacity.",
			func(c *Config) **Peers { return &c.Peers }, perhaps[Peers]{peers()}),
		key("workers", "The workers of the fleet: policies can ask for them, what they can execute bounds what policies may add, and the daemon follows their KV events.",
			func(c *Config) *[]Worker { return &c.Workers },
			many[Worker]{item: worker(), what: "id", identity: workerIdentity}),
		opt("lineage", "Bounds of the lineage index of each namespace.",
			func(c *Config) *Lineage { return &c.Lineage }, object[Lineage]{fields: []field[Lineage]{
				opt("max_sessions", "Most sessions; the least recently used go. Default: 16384.",
					func(l *Lineage) *int { return &l.MaxSessions }, whole[int]{1, 1 << 30}),
				opt("max_nodes", "Most blocks, at 64 bytes each at most. Default: 2097152.",
					func(l *Lineage) *int { return &l.MaxNodes }, whole[int]{1, 1 << 30}),
			}}),
		key("request_hints", "keep or strip the hints that a client sent with its request: the request_hint of a routing context, and an envelope that is dispatched as a client's.",
			func(c *Config) *RequestHints { return &c.RequestHints }, oneOf("value", HintsKeep, HintsStrip)),
		key("forward_unknown", "keep or drop actions of unknown types in the envelope that is passed on.",
			func(c *Config) *ForwardUnknown { return &c.ForwardUnknown }, oneOf("value", UnknownKeep, UnknownDrop)),
		key("listen", "The addresses of the daemon.",
			func(c *Config) *Listen { return &c.Listen }, listen()),
		opt("guest_memory", "What all guests take together: linear memory and tables at their limits, of every instance and one spare of each guest, their modules and machine code, and while guests are replaced the old ones too. Default: 1GiB, or 512MiB for each core where that is more.",
			func(c *Config) *Size { return &c.GuestMemory }, size{1 << 20, maxSize, 1}),
		key("limits", "Bounds on what one sender may hand in, and on guests that compute for long.",
			func(c *Config) *Limits { return &c.Limits }, object[Limits]{fields: []field[Limits]{
				key("body_bytes", "Largest encoded envelope.",
					func(l *Limits) *Size { return &l.BodyBytes }, size{1 << 10, 1 << 30, 1}),
				key("actions", "Most actions in one envelope; those beyond are rejected, and more than four times as many make it malformed.",
					func(l *Limits) *int { return &l.Actions }, whole[int]{1, 1 << 16}),
				opt("heavy_fuel", "A guest with a call that took so many instructions lately is heavy: of heavy guests' calls, and of long starts, half as many as there are cores run at once, and the others wait. Default: 50000, some 0.05 ms.",
					func(l *Limits) *uint64 { return &l.HeavyFuel }, whole[uint64]{0, math.MaxInt64}),
			}}),
		key("compile", "The child processes in which guests are compiled and tried before they run.",
			func(c *Config) *Compile { return &c.Compile }, compile()),
		key("log", "The daemon's log.",
			func(c *Config) *Log { return &c.Log }, object[Log]{fields: []field[Log]{
				key("level", "The least severe level that is written.",
					func(l *Log) *LogLevel { return &l.Level }, oneOf("level", LevelDebug, LevelInfo, LevelWarn, LevelError)),
				key("format", "text for key=value lines, json for one object a line.",
					func(l *Log) *LogFormat { return &l.Format }, oneOf("format", FormatText, FormatJSON)),
			}}),
		key("drain_timeout", "How long a stopping daemon waits for calls in flight; 0 does not wait.",
			func(c *Config) *time.Duration { return &c.DrainTimeout }, duration{}),
	},
		check: func(r *reader, n *node, at *path, c *Config) {
			if v := n.child("peers"); v != nil && c.Store.Capacity == 0 {
				r.add(v.line, v.col, at.under("peers"), "needs a block store: set store.capacity")
			}
			if v := n.child("gpu"); v != nil {
				c.GPU.check(r, v, at.under("gpu"), c)
			}
		},
	}
}

func guest() object[Guest] {
	return object[Guest]{fields: []field[Guest]{
		key("name", "Unique name: 1 to 64 letters, digits, '.', '_' or '-'.",
			func(g *Guest) *string { return &g.Name }, name()).must(),
		key("module", "Path of the .wasm, relative to the folder of this file, or embedded:NAME for a built-in guest.",
			func(g *Guest) *string { return &g.Module }, module()).must(),
		opt("sha256", "SHA-256 of the module in hex; checked when given.",
			func(g *Guest) *string { return &g.SHA256 }, digest()),
		key("grants", "Capabilities (import modules) that may link. Nothing else does.",
			func(g *Guest) *[]string { return &g.Grants },
			many[string]{item: oneOf[string]("capability", capabilities()...), what: "capability", identity: quotedID}),
		key("parameters", "Given to the guest when it starts; checked against the schema in its manifest.",
			func(g *Guest) *json.RawMessage { return &g.Parameters }, tree{}),
		key("limits", "Bounds on the guest's calls. A key that is absent or 0 leaves the choice to the manifest and the runtime.",
			func(g *Guest) *GuestLimits { return &g.Limits }, object[GuestLimits]{fields: []field[GuestLimits]{
				opt("fuel", "Instructions per role call.",
					func(l *GuestLimits) *uint64 { return &l.Fuel }, whole[uint64]{0, math.MaxInt64}),
				opt("init_fuel", "Instructions for the start of an instance.",
					func(l *GuestLimits) *uint64 { return &l.InitFuel }, whole[uint64]{0, math.MaxInt64}),
				opt("parse_fuel", "Instructions per call of a parser. Default: fuel.",
					func(l *GuestLimits) *uint64 { return &l.ParseFuel }, whole[uint64]{0, math.MaxInt64}),
				opt("formulate_fuel", "Instructions per call of a policy. Default: fuel.",
					func(l *GuestLimits) *uint64 { return &l.FormulateFuel }, whole[uint64]{0, math.MaxInt64}),
				opt("idle_fuel", "Instructions per call of kvrt_idle, which a guest with a collector exports.",
					func(l *GuestLimits) *uint64 { return &l.IdleFuel }, whole[uint64]{0, math.MaxInt64}),
				opt("idle_calls", "Role calls of an instance after which kvrt_idle is due.",
					func(l *GuestLimits) *uint64 { return &l.IdleCalls }, whole[uint64]{0, 1 << 30}),
				opt("idle_bytes", "Bytes of frames and answers after which kvrt_idle is due.",
					func(l *GuestLimits) *Size { return &l.IdleBytes }, size{0, 1 << 40, 1}),
				opt("memory", "Linear memory of one instance, a multiple of 64KiB.",
					func(l *GuestLimits) *Size { return &l.Memory }, size{0, maxMemory, wasmPage}),
				opt("table_elements", "Entries of all tables of one instance, at 8 bytes each.",
					func(l *GuestLimits) *uint32 { return &l.TableElements }, whole[uint32]{0, 1 << 24}),
				opt("call_depth", "What calls within a call may take, as admission weighs them.",
					func(l *GuestLimits) *Size { return &l.CallDepth }, size{0, 16 << 20, 1}),
				opt("output_bytes", "Longest answer of a call.",
					func(l *GuestLimits) *Size { return &l.OutputBytes }, size{0, 1 << 30, 1}),
				opt("actions", "Most actions in the answer of a parser or a policy.",
					func(l *GuestLimits) *int { return &l.Actions }, whole[int]{0, 1 << 20}),
				opt("log_lines", "Most log lines of one call; more are dropped and counted.",
					func(l *GuestLimits) *int { return &l.LogLines }, whole[int]{0, 1 << 20}),
				opt("log_bytes", "Most bytes in the log lines of one call; more are dropped and counted.",
					func(l *GuestLimits) *Size { return &l.LogBytes }, size{0, 1 << 30, 1}),
				opt("host_calls", "Most calls of host functions in one call.",
					func(l *GuestLimits) *uint64 { return &l.HostCalls }, whole[uint64]{0, 1 << 30}),
				opt("host_bytes", "Most bytes that host functions copy for one call.",
					func(l *GuestLimits) *Size { return &l.HostBytes }, size{0, 1 << 40, 1}),
				opt("instances", "Size of the instance pool.",
					func(l *GuestLimits) *int { return &l.Instances }, whole[int]{0, 1024}),
			}}),
		opt("on_error", "What a failing call does to its request, which the role decides: open, the request goes on without it, for a policy in kv_hint_policy; reject, its action is rejected, for every other guest.",
			func(g *Guest) *OnError { return &g.OnError }, oneOf("value", OnErrorOpen, OnErrorReject)),
	}}
}

// capabilities lists the import modules of the ABI.
func capabilities() []string {
	var names []string
	for _, f := range abi.Contract().Functions {
		if !slices.Contains(names, f.Module) {
			names = append(names, f.Module)
		}
	}
	return names
}

func fetch() object[Fetch] {
	return object[Fetch]{fields: []field[Fetch]{
		key("allowed_sources", "Source endpoints that a hint may name, each scheme://host[:port][/prefixlen]. []: none.",
			func(f *Fetch) *[]string { return &f.AllowedSources }, many[string]{item: text{}, what: "source", identity: quotedID}),
		key("ttl", "Life of a hint, from the first submission of its request.",
			func(f *Fetch) *time.Duration { return &f.TTL }, duration{minTTL}),
		key("tombstone_ttl", "How long a finished request refuses late hints.",
			func(f *Fetch) *time.Duration { return &f.TombstoneTTL }, duration{minTTL}),
		key("max_entries", "Most requests held at once.",
			func(f *Fetch) *int { return &f.MaxEntries }, whole[int]{1, math.MaxInt32}),
		key("max_hashes", "Most block hashes in one hint, duplicates counted.",
			func(f *Fetch) *int { return &f.MaxHashes }, whole[int]{1, 1 << 28}),
	}}
}

func blockStore() object[Store] {
	return object[Store]{
		fields: []field[Store]{
			opt("capacity", "Bytes of host memory for blocks, such as 1GiB, taken when the daemon starts. Default: none, and no block store.",
				func(s *Store) *Size { return &s.Capacity }, size{1, maxSize, 1}),
			key("block_bytes", "Sizes of slots. A block goes into the smallest that hold it, and each size has an equal part of the capacity. At least one.",
				func(s *Store) *[]Size { return &s.BlockBytes }, many[Size]{item: size{4 << 10, 1 << 30, 4 << 10}, what: "size", identity: sizeIdentity}),
			key("checksum", "Whether a CRC32C is made of each block that is stored.",
				func(s *Store) *bool { return &s.Checksum }, yesNo{}),
			opt("huge_pages", "Whether to use pages of 2 MiB, where the machine has reserved some.",
				func(s *Store) *bool { return &s.HugePages }, yesNo{}),
		},
		check: func(r *reader, n *node, at *path, s *Store) {
			if v := n.child("block_bytes"); v != nil && len(s.BlockBytes) == 0 {
				r.add(v.line, v.col, at.under("block_bytes"), "needs at least one size")
			}
			for _, b := range s.BlockBytes {
				v := n.child("capacity")
				if v == nil || s.Capacity == 0 || s.Capacity/Size(len(s.BlockBytes)) >= b {
					continue
				}
				r.add(v.line, v.col, at.under("capacity"), "%s, in equal parts for each of %d sizes of blocks, has no room for a block of %s", s.Capacity, len(s.BlockBytes), b)
				return
			}
		},
	}
}

func sizeIdentity(s *Size) (id, key string) { return s.String(), "" }

func compile() object[Compile] {
	return object[Compile]{fields: []field[Compile]{
		key("timeout", "How much CPU time one guest may take for compilation, init, one call of each role and its own cases; by the clock it may take three times as long.",
			func(c *Compile) *time.Duration { return &c.Timeout }, duration{time.Millisecond}),
		key("memory", "How much one child may take beyond what the program needs itself.",
			func(c *Compile) *Size { return &c.Memory }, size{16 << 20, maxSize, 1}),
		opt("cache", "Folder for compiled guests, made with mode 0700, relative to the folder of this file; off: compile in the daemon itself, and try nothing. Default: the environment variable KVRT_COMPILE_CACHE, which wins over this key too, else kvrt in the user's cache folder.",
			func(c *Compile) *string { return &c.Cache }, cacheFolder()),
		key("cache_size", "Largest size of that folder; what was not used for longest is removed first.",
			func(c *Compile) *Size { return &c.CacheSize }, size{1 << 20, maxSize, 1}),
		key("children", "Most children at once; further ones wait.",
			func(c *Compile) *int { return &c.Children }, whole[int]{1, 64}),
	}}
}

func listen() object[Listen] {
	return object[Listen]{
		fields: []field[Listen]{
			key("socket", "Path of the Unix socket for engines. Default: /run/kvrt/kvrt.sock where that folder can be written, else kvrt.sock in XDG_RUNTIME_DIR, else in /tmp/kvrt-UID.",
				func(l *Listen) *string { return &l.Socket }, socketPath()),
			opt("http", "Path of a second Unix socket, on which routers in any language post routing contexts as JSON over HTTP. Default: none.",
				func(l *Listen) *string { return &l.HTTP }, socketPath()),
			key("admin", "host:port of the admin API and the metrics. Loopback only, unless admin_insecure is set.",
				func(l *Listen) *string { return &l.Admin }, hostPort()),
			key("admin_insecure", "Allows an admin address that is not loopback. The admin API has no authentication: whoever reaches it controls the daemon.",
				func(l *Listen) *bool { return &l.AdminInsecure }, yesNo{}),
		},
		check: func(r *reader, n *node, at *path, l *Listen) {
			if v := n.child("http"); v != nil && l.HTTP == l.Socket {
				r.add(v.line, v.col, at.under("http"), "is listen.socket too: each has a path of its own")
			}
			if v := n.child("admin"); v != nil && !l.AdminInsecure && !isLoopback(l.Admin) {
				r.add(v.line, v.col, at.under("admin"),
					"%s is not a loopback address, and the admin API has no authentication: use 127.0.0.1 or [::1], or set listen.admin_insecure: true", quote(l.Admin))
			}
		},
	}
}

func worker() object[Worker] {
	return object[Worker]{fields: []field[Worker]{
		key("id", "Unique id: an integer or a string.",
			func(w *Worker) *WorkerID { return &w.ID }, workerID{}).must(),
		opt("type", "Leg that the worker serves.",
			func(w *Worker) *WorkerType { return &w.Type }, oneOf("worker type", WorkerAggregated, WorkerPrefill, WorkerDecode)),
		opt("namespace", "Isolates the block hashes of the worker: a request sees the lineage of its own namespace.",
			func(w *Worker) *string { return &w.Namespace }, text{}),
		opt("block_size", "Tokens of one block.",
			func(w *Worker) *int { return &w.BlockSize }, whole[int]{1, 1 << 20}),
		key("capabilities", "Action types that the worker takes. Without the key: every one; []: none.",
			func(w *Worker) **[]string { return &w.Capabilities },
			perhaps[[]string]{many[string]{item: text{}, what: "capability", identity: quotedID}}),
		key("ranks", "Endpoints by data-parallel rank.",
			func(w *Worker) *[]Rank { return &w.Ranks },
			many[Rank]{item: rank(), what: "dp_rank", identity: rankIdentity}),
	}}
}

func rank() object[Rank] {
	return object[Rank]{fields: []field[Rank]{
		key("dp_rank", "Data-parallel rank. A worker without ranks has one entry without it.",
			func(r *Rank) **uint32 { return &r.DPRank }, perhaps[uint32]{whole[uint32]{0, math.MaxUint32 - 1}}),
		opt("events", "Endpoint of the rank's KV events.",
			func(r *Rank) *string { return &r.Events }, endpoint()),
		opt("replay", "Endpoint that replays missed KV events.",
			func(r *Rank) *string { return &r.Replay }, endpoint()),
		opt("source", "Endpoint that other workers fetch blocks from.",
			func(r *Rank) *string { return &r.Source }, endpoint()),
	}}
}

func rankIdentity(r *Rank) (id, key string) {
	if r.DPRank == nil {
		return "", ""
	}
	return strconv.FormatUint(uint64(*r.DPRank), 10), "dp_rank"
}

func workerIdentity(w *Worker) (id, key string) { return w.ID.String(), "id" }

func id(s string) string {
	if s == "" {
		return ""
	}
	return strconv.Quote(s)
}
