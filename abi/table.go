package abi

// Major and Minor are the version of the contract that this package describes.
// A guest names the major version with its marker export; a host of version 1.y
// runs every guest built against 1.x.
const (
	Major = 1
	Minor = 0
)

// ValType is a core WebAssembly value type, by its binary encoding.
type ValType byte

// The value types that cross the boundary.
const (
	I32 ValType = 0x7f
	I64 ValType = 0x7e
	F32 ValType = 0x7d
	F64 ValType = 0x7c
)

func (t ValType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	}
	return "unknown"
}

// Table is the whole contract as data.
type Table struct {
	Exports   []Export
	Enums     []Enum
	Records   []Record
	Functions []Function
	// Stubs are functions that no operator grants, see [ModuleWASI].
	Stubs  []Function
	Limits []Limit
}

// Limit is a bound that every host of version 1 holds by default.
type Limit struct {
	Name  string
	Value uint64
	Unit  string
	Doc   string
}

// Export is a function that a guest exports.
type Export struct {
	Name    string
	Params  []ValType
	Results []ValType
	Need    string // "required", "role" or "optional"
	Doc     string
}

// Enum is a closed or append-only set of numbers.
type Enum struct {
	Name   string // Go type name and prefix of the constants
	Bits   int    // width of the field that holds it
	Flags  bool   // values are single bits
	Doc    string
	Values []EnumValue
}

// EnumValue is one member of an Enum. Text is what people and JSON see.
type EnumValue struct {
	Name  string
	Text  string
	Value uint64
	Doc   string
}

// Record is a fixed layout, little-endian, 8-byte aligned.
type Record struct {
	Name   string
	Size   int
	Doc    string
	Fields []Field
}

// Field is one field of a Record. Type is u8, u16, u32, u64 or the name of a Record.
type Field struct {
	Name string
	Off  int
	Type string
	Doc  string
}

// Function is a host function. The import module is the capability.
type Function struct {
	Module string
	Name   string
	Params []Param
	Result ValType // 0 when it returns nothing
	Effect bool    // takes place only when the call's action is accepted
	Draft  bool    // may still change; no host of this minor version offers it
	Fuel   uint64  // declared cost of one call (fuel/1)
	PerB   uint64  // declared cost per 64 bytes copied (fuel/1)
	Doc    string
}

// Param is one parameter of a Function.
type Param struct {
	Name string
	Type ValType
}

// Contract returns the table of ABI version 1.
func Contract() Table {
	return Table{Exports: exports(), Enums: enums(), Records: records(), Functions: functions(), Stubs: stubs(), Limits: limits()}
}

func exports() []Export {
	roleParams, roleResults := []ValType{I32, I32}, []ValType{I64}
	return []Export{
		{"kvrt_abi_1", nil, nil, "required", "Marker: names the major version of the ABI. Never called."},
		{"kvrt_arena", []ValType{I32}, []ValType{I64}, "required", "Returns the buffer that the host writes frames into: offset << 32 | size, 8-byte aligned, not at offset 0, size at least the argument. " +
			"Called once before kvrt_init, and again only when a larger frame comes. Anything else is a refusal: the action is rejected with limit_exceeded. The buffer must be writable memory that the compiler cannot fold into constant data."},
		{"kvrt_init", roleParams, roleResults, "required", "Called once per instance with an init frame. Answer: the features chosen (0: none), or a refusal with a detail, which fails the load."},
		{"kvrt_parse", roleParams, roleResults, "role", "Role parser. Turns a parse frame (bytes of a foreign dialect) into an envelope frame in the answer's body. 0 is not an answer."},
		{"kvrt_handle", []ValType{I32, I32, I32}, roleResults, "role", "Role handler. Arguments: offset and length of an envelope frame that lists every action of the envelope for this guest, and the position of the action to judge in that list. " +
			"The host may write the frame once and call for several positions; a guest must not write to it. Answer: accepted or rejected, and optionally the action rewritten in the answer's body."},
		{"kvrt_formulate", roleParams, roleResults, "role", "Role policy. Turns a context frame into actions: an envelope frame in the answer's body, whose protocol_version and message_id are ignored. 0: no actions. " +
			"An action without an id gets one, the guest's name and its position in the answer as in retain-session-0; one without a version is of version 1.0. Effects take place when the answer is taken, even if single actions are then left out."},
		{"kvrt_idle", nil, nil, "optional", "Called after kvrt_init and then between calls of roles, with a budget of its own (DefaultIdleFuel), so that a guest with a collector collects there. " +
			"It is due after DefaultIdleCalls calls or DefaultIdleBytes bytes, and no role is called when IdleOverdue times as much has gone by. It has no effects. A trap or the end of its fuel is the end of the instance."},
		{"_initialize", nil, nil, "optional", "Called first, once per instance, when present (reactor modules)."},
	}
}

func enums() []Enum {
	return []Enum{
		{"Kind", 32, false, "What a frame is; the first field of every frame.", []EnumValue{
			{"Init", "init", 1, "record InitFrame"},
			{"Parse", "parse", 2, "record ParseFrame"},
			{"Envelope", "envelope", 3, "record EnvelopeFrame: what handle receives, and what parse and formulate answer"},
			{"Context", "context", 4, "record ContextFrame: what formulate receives"},
		}},
		{"Tag", 8, false, "What a Node holds.", []EnumValue{
			{"Absent", "absent", 0, "nothing: the sender left it out"},
			{"Null", "null", 1, ""},
			{"Bool", "bool", 2, "val is 0 or 1"},
			{"U64", "u64", 3, "val is an integer in [0, 2^64)"},
			{"I64", "i64", 4, "val is a negative integer in [-2^63, 0), two's complement"},
			{"F64", "f64", 5, "val is the bits of a double; may be NaN or infinite only where the encoding can express it"},
			{"Number", "number", 6, "number text that no 64-bit type holds (2^64, 1e400): len ASCII bytes at offset val"},
			{"String", "string", 7, "len bytes of UTF-8 at offset val"},
			{"Bytes", "bytes", 8, "len bytes at offset val"},
			{"Array", "array", 9, "len Nodes at offset val, 8-byte aligned"},
			{"Map", "map", 10, "len Entries at offset val, 8-byte aligned, in the sender's order"},
			{"U64s", "u64s", 11, "len u64 at offset val, 8-byte aligned: the canonical form of every non-empty array whose elements are all integers in [0, 2^64)"},
			{"Ext", "ext", 12, "a msgpack extension: type in ext, len bytes at offset val"},
		}},
		{"Status", 32, false, "The verdict in an Answer.", []EnumValue{
			{"Accepted", "ACCEPTED", 1, "taken by this runtime"},
			{"Rejected", "REJECTED", 2, "not taken; reason says why"},
		}},
		{"Reason", 32, false, "Why an action was rejected. Append-only. A role or host function returns the negated value. What is marked host only is not a guest's to give.", []EnumValue{
			{"None", "", 0, "no reason: accepted"},
			{"UnsupportedActionType", "unsupported_action_type", 1, "no handler in this generation takes this action type"},
			{"UnsupportedActionVersion", "unsupported_action_version", 2, "the handler does not take this action version"},
			{"MalformedAction", "malformed_action", 3, "not a mapping, or a field of the action is missing or of the wrong type"},
			{"InvalidPayload", "invalid_payload", 4, "the payload breaks the rules of its action type"},
			{"SourceNotAllowed", "source_not_allowed", 5, "the operator does not allow this source endpoint"},
			{"ConflictingSource", "conflicting_source", 6, "an earlier hint of this request named another source; that hint is failed too"},
			{"LimitExceeded", "limit_exceeded", 7, "a configured cap was reached"},
			{"Superseded", "superseded", 8, "another hint took its place"},
			{"HandlerError", "handler_error", 9, "the guest answered something the ABI does not allow, or a host function failed"},
			{"HandlerTrap", "handler_trap", 10, "the guest trapped (host only)"},
			{"HandlerOutOfFuel", "handler_out_of_fuel", 11, "the guest used up its fuel (host only)"},
			{"HandlerUnavailable", "handler_unavailable", 12, "no instance of the guest was free in time, or it is quarantined (host only)"},
			{"HandlerTimeout", "handler_timeout", 13, "the guest ran past its deadline (host only)"},
			{"RequestFinished", "request_finished", 14, "the request was finished or discarded before this hint came"},
			{"NotFound", "not_found", 15, "the thing asked for is not there"},
			{"StateConflict", "state_conflict", 16, "a compare-and-swap no longer held when the call's effects were committed"},
			{"Unavailable", "unavailable", 17, "the native subsystem cannot take it now"},
			{"IndexOff", "index_off", 18, "no lineage index is kept for the request's namespace"},
			{"UnknownSession", "unknown_session", 19, "the lineage index has no such session, or it is another tenant's"},
			{"UnknownAnchor", "unknown_anchor", 20, "the lineage index does not know the anchor block"},
			{"Stripped", "stripped", 21, "the operator drops hints that clients send (host only)"},
		}},
		{"Feature", 64, true, "Feature bits: offered by the host in the init frame, chosen by the guest in its answer. Unknown bits are ignored.", []EnumValue{
			{"RawPayload", "raw_payload", 1 << 0, "actions carry the payload's bytes as they were sent"},
		}},
		{"Format", 32, false, "Encoding of raw bytes.", []EnumValue{
			{"Unknown", "unknown", 0, ""},
			{"JSON", "json", 1, ""},
			{"Msgpack", "msgpack", 2, ""},
		}},
		{"Leg", 32, false, "Which leg of a disaggregated request this is.", []EnumValue{
			{"Absent", "", 0, "not told"},
			{"Aggregated", "aggregated", 1, ""},
			{"Prefill", "prefill", 2, ""},
			{"Decode", "decode", 3, ""},
		}},
		{"Level", 32, false, "Log level.", []EnumValue{
			{"Debug", "debug", 0, ""},
			{"Info", "info", 1, ""},
			{"Warn", "warn", 2, "the host repeats an equal warning of a guest only once"},
			{"Error", "error", 3, "repeated like a warning: once"},
		}},
		{"HashKind", 32, false, "What a block hash is. Kinds are never compared with each other.", []EnumValue{
			{"Absent", "", 0, "not told"},
			{"Engine", "engine", 1, "the serving engine's opaque block hash"},
			{"Sequence", "sequence", 2, "the router's chained sequence hash"},
			{"Local", "local", 3, "the hash of one block's tokens"},
		}},
		{"Trigger", 32, false, "What made the session send this request.", []EnumValue{
			{"Absent", "", 0, "not told"},
			{"UserMessage", "user_message", 1, ""},
			{"ToolResult", "tool_result", 2, ""},
			{"Other", "other", 3, ""},
		}},
		{"Has", 64, true, "Presence bits of a ContextFrame: a field whose bit is 0 is absent, not zero.", []EnumValue{
			{"Attempt", "attempt", 1 << 0, ""},
			{"PromptTokens", "prompt_tokens", 1 << 1, ""},
			{"ExpectedOutputTokens", "expected_output_tokens", 1 << 2, ""},
			{"ToolsDeclared", "tools_declared", 1 << 3, ""},
			{"BlockSize", "block_size", 1 << 4, ""},
			{"BlockHashes", "block_hashes", 1 << 5, "an empty list is present"},
			{"Candidates", "candidates", 1 << 6, "an empty list is present"},
			{"SessionFinal", "session_final", 1 << 7, ""},
		}},
		{"WorkerHas", 32, true, "Presence bits of a Worker.", []EnumValue{
			{"DPRank", "dp_rank", 1 << 0, ""},
			{"Capabilities", "capabilities", 1 << 1, "an empty list is present"},
			{"GPU", "matched_gpu", 1 << 2, ""},
			{"CPU", "matched_cpu", 1 << 3, ""},
			{"Disk", "matched_disk", 1 << 4, ""},
			{"External", "matched_external", 1 << 5, ""},
		}},
		{"FetchFlag", 32, true, "Flags of kvrt_fetch.submit.", []EnumValue{
			{"NoRetain", "no_retain", 1 << 0, ""},
		}},
		{"FetchState", 32, false, "State of a request in the fetch hint store.", []EnumValue{
			{"None", "none", 0, "no hint, or an expired one"},
			{"Live", "live", 1, "a hint is stored and usable"},
			{"Failed", "failed", 2, "a hint is stored but the request is not served remotely"},
			{"Finished", "finished", 3, "finished or discarded a short while ago"},
		}},
		{"LineageFlag", 32, true, "Flags of kvrt_session.lineage.", []EnumValue{
			{"Anchor", "anchor", 1 << 0, "anchor is given"},
		}},
		{"Residency", 8, false, "Where the one that is asked, kvrt_store or kvrt_gpu, has a block.", []EnumValue{
			{"Absent", "absent", 0, "nowhere"},
			{"Filling", "filling", 1, "nowhere yet: somebody is writing it"},
			{"DRAM", "dram", 2, "in host memory (kvrt_store)"},
			{"Device", "device", 3, "in the device's memory (kvrt_gpu)"},
		}},
		{"Device", 32, false, "What a device is.", []EnumValue{
			{"HostMemory", "hostmem", 1, "none: host memory stands in for it"},
			{"CUDA", "cuda", 2, "a GPU"},
		}},
	}
}

func records() []Record {
	span := func(name string, off int, doc string) Field { return Field{name, off, "Span", doc} }
	u32 := func(name string, off int, doc string) Field { return Field{name, off, "u32", doc} }
	u64 := func(name string, off int, doc string) Field { return Field{name, off, "u64", doc} }
	node := func(name string, off int, doc string) Field { return Field{name, off, "Node", doc} }
	return append([]Record{
		{"Span", 8, "A run of bytes. off is relative to the base of the record that holds the span. off 0 and len 0: absent; off not 0 and len 0: present and empty.", []Field{
			u32("off", 0, "where it begins"), u32("len", 4, "bytes")}},
		{"Node", 16, "One value of a payload tree. Offsets are relative to the base of the record that holds the tree's root.", []Field{
			{"tag", 0, "u8", "Tag"}, {"ext", 1, "u8", "extension type (Ext), else 0"}, {"zero", 2, "u16", "0"},
			u32("len", 4, "bytes, elements or entries; 0 for scalars"), u64("val", 8, "the scalar, or an offset below 2^32")}},
		{"Entry", 32, "One entry of a map.", []Field{
			node("key", 0, "a string in JSON; msgpack maps may have other keys"), node("val", 16, "never Absent")}},
		{"InitFrame", 48, "What kvrt_init receives. Base: the frame.", []Field{
			u32("kind", 0, "Kind Init"), u32("size", 4, "bytes of the frame"), u64("features", 8, "Feature bits offered"),
			span("guest_name", 16, "the name the operator gave this guest"), u32("abi_minor", 24, "minor version of the host"), u32("zero", 28, "0"),
			node("parameters", 32, "the operator's parameters; Absent when none")}},
		{"ParseFrame", 56, "What kvrt_parse receives. Base: the frame.", []Field{
			u32("kind", 0, "Kind Parse"), u32("size", 4, "bytes of the frame"), u32("format", 8, "Format of raw"), u32("zero", 12, "0"),
			span("raw", 16, "the bytes as they were sent"), span("request_id", 24, "the request that the bytes came with"), span("dialect", 32, "the dialect's name"),
			node("document", 40, "raw as a tree when it is JSON or msgpack; else Absent")}},
		{"EnvelopeFrame", 72, "A batch of actions. Base: the frame. The fields from request_id to total are set by the host; in a guest's answer they are 0 and ignored.", []Field{
			u32("kind", 0, "Kind Envelope"), u32("size", 4, "bytes of the frame"),
			span("protocol_version", 8, "such as 0.1"), span("message_id", 16, "names the envelope to its sender"),
			u32("actions", 24, "offset of u32[count]: offsets of Action records, each 8-byte aligned"), u32("count", 28, "number of actions listed"),
			span("request_id", 32, "the request that the envelope is attached to"), span("engine", 40, "the serving engine that asks"),
			u32("leg", 48, "Leg"), u32("dp_rank", 52, "data-parallel rank"), u32("attempt", 56, "retry number"), u32("total", 60, "number of actions in the whole envelope"),
			u64("zero", 64, "0")}},
		{"Action", 64, "One action. Base: the record itself, so that it can be moved as one run of size bytes.", []Field{
			u32("size", 0, "bytes of the record with everything it refers to, a multiple of 8"), u32("index", 4, "position in the whole envelope; ignored in a guest's answer"),
			span("action_id", 8, "names the action to its sender"), span("action_type", 16, "such as kv.fetch"), span("action_version", 24, "absent counts as 1.0 where a rule says so"),
			span("raw", 32, "the payload as it was sent (feature raw_payload), else absent; ignored in a guest's answer"), u32("raw_format", 40, "Format of raw"), u32("zero", 44, "0"),
			node("payload", 48, "root of the payload tree")}},
		{"Answer", 40, "What a role returns a reference to: 8-byte aligned, below 2^31, outside the frame. Base: the record.", []Field{
			u32("status", 0, "Status"), u32("reason", 4, "Reason when rejected, else 0"), span("detail", 8, "text for people, UTF-8; 512 bytes are kept"),
			span("body", 16, "handle: a rewritten Action, or absent; parse and formulate: an EnvelopeFrame; absent when rejected; 8-byte aligned"),
			u64("features", 24, "init: Feature bits chosen"), u64("zero", 32, "0")}},
		{"Worker", 64, "A worker of the fleet. Base: the frame that holds it.", []Field{
			node("id", 0, "integer or string"), u32("dp_rank", 16, "data-parallel rank"), u32("present", 20, "WorkerHas bits"),
			span("worker_type", 24, "aggregated, prefill, decode, ..."), span("source_control_endpoint", 32, "where its blocks can be fetched from"),
			u32("capabilities", 40, "offset of Span[capabilities_count]"), u32("capabilities_count", 44, "action types that it takes"),
			u32("matched_gpu", 48, "prefix blocks already there, by tier"), u32("matched_cpu", 52, "as above"), u32("matched_disk", 56, "as above"), u32("matched_external", 60, "as above")}},
		{"ContextFrame", 240, "What kvrt_formulate receives. Base: the frame.", []Field{
			u32("kind", 0, "Kind Context"), u32("size", 4, "bytes of the frame"), u64("present", 8, "Has bits"),
			span("request_id", 16, "the request"), u32("attempt", 24, "retry number"), u32("leg", 28, "Leg"),
			span("model", 32, "routing partition"), span("group", 40, "routing partition"), span("worker_type", 48, "routing partition"),
			span("tenant", 56, "who asks"), span("namespace", 64, "isolation of block hashes"),
			u64("prompt_tokens", 72, "tokens"), u64("expected_output_tokens", 80, "tokens"), u32("tools_declared", 88, "0 or 1"), u32("hash_kind", 92, "HashKind of block_hashes"),
			u32("block_size", 96, "tokens"), u32("candidates_count", 100, "workers that could have been chosen"), u32("candidates", 104, "offset of Worker[candidates_count]"),
			u32("block_hashes_count", 108, "blocks of the prompt"), u32("block_hashes", 112, "offset of u64[block_hashes_count]"), u32("zero", 116, "0"),
			span("session_id", 120, "the session"), span("parent_session_id", 128, "the session that it was forked from"), u32("session_final", 136, "0 or 1"), u32("input_trigger", 140, "Trigger"),
			{"selected", 144, "Worker", "the worker that was chosen; its id is Absent when none was"},
			node("request_hint", 208, "envelope that came with the request, as a map; Absent when none"), node("selection_hint", 224, "envelope of the selection step, as a map; Absent when none")}},
		{"FetchStatus", 32, "What kvrt_fetch.status writes.", []Field{
			u32("state", 0, "FetchState"), u32("hashes", 4, "distinct block hashes of the live hint"),
			u64("submitted_ns", 8, "when the first hint came, Unix ns"), u64("expires_ns", 16, "when it expires, Unix ns"), u32("has_source", 24, "0: local storage only"), u32("zero", 28, "0")}},
	}, append(sessionRecords(), storeRecords()...)...)
}
