package hint

import (
	"bytes"

	"github.com/kvrt/kvrt/abi"
)

// Target says what the reader of an envelope puts up with beyond what every one does.
// The zero value is a serving engine that takes one kv.fetch per envelope, and kv.retain
// of either schema.
type Target struct {
	// ManyFetches allows several kv.fetch in one envelope.
	ManyFetches bool
	// TokenRanges refuses the kv.retain schema that names blocks: the target reads
	// {scope, directives} alone.
	TokenRanges bool
	// Struct refuses payloads that a protobuf Struct cannot hold, in which SGLang has them:
	// integers that no double holds, but for the block_hashes of kv.fetch 1.0 in protocol
	// 0.1, which become texts. Without it such an action is refused when the request is
	// lowered for SGLang, and the request with it.
	Struct bool
}

// The caps on kv.retain that hold over one envelope.
const (
	MaxRetains    = 16
	MaxDirectives = 128
)

// Check holds the actions of one envelope, in order, against the rules of its target:
// those of kv.fetch and kv.retain; of other types it knows none. One that is used again
// allocates nothing while actions keep to the rules. Reset comes first.
type Check struct {
	target     Target
	hashTexts  bool // the target has hashes of kv.fetch 1.0 as texts
	fetches    int
	retains    int
	directives int
	scoped     bool   // a claim over token ranges has set the scope
	scope      []byte // nil: null
	scopeBuf   []byte
	order      []point
	trial      []point
}

// Reset begins another envelope, of protocol 0.1.
func (c *Check) Reset(t Target) {
	*c = Check{target: t, hashTexts: true, scopeBuf: c.scopeBuf[:0], order: c.order[:0], trial: c.trial[:0]}
}

// Add judges one more action and, when it keeps to the rules, counts it: ReasonNone and
// "". Otherwise it says why the target would refuse it, and the action leaves no trace.
// A nil version is no version, which counts as 1.0.
func (c *Check) Add(typ, version []byte, base abi.Base, payload abi.Node) (abi.Reason, string) {
	switch string(typ) {
	case "kv.fetch", "kv.retain":
		if payload.Tag == abi.TagAbsent {
			return abi.ReasonMalformedAction, "payload is missing"
		}
	}
	if c.target.Struct {
		if detail := c.structFault(typ, version, base, payload); detail != "" {
			return abi.ReasonInvalidPayload, detail
		}
	}
	switch string(typ) {
	case "kv.fetch":
		if c.fetches > 0 && !c.target.ManyFetches {
			return abi.ReasonSuperseded, "the envelope has a kv.fetch already, and takes one"
		}
		if reason, detail := CheckFetch(version, base, payload); reason != abi.ReasonNone {
			return reason, detail
		}
		c.fetches++
	case "kv.retain":
		if c.retains >= MaxRetains {
			return abi.ReasonLimitExceeded, "at most 16 kv.retain actions per envelope"
		}
		if reason, detail := c.addRetain(version, base, payload); reason != abi.ReasonNone {
			return reason, detail
		}
		c.retains++
	}
	return abi.ReasonNone, ""
}

// Keep counts an action that stays in the envelope whatever it breaks.
func (c *Check) Keep(typ, version []byte, base abi.Base, payload abi.Node) {
	switch string(typ) {
	case "kv.fetch":
		c.fetches++
	case "kv.retain":
		if reason, _ := c.addRetain(version, base, payload); reason != abi.ReasonNone {
			if d := base.Lookup(payload, "directives"); d.Tag == abi.TagArray {
				c.directives += int(d.Len)
			}
		}
		c.retains++
	}
}

// majorOne tells whether a version's major part is 1, in ASCII digits. No version counts
// as 1.0.
func majorOne(version []byte) bool {
	if version == nil {
		return true
	}
	major, _, _ := bytes.Cut(version, []byte{'.'})
	last := len(major) - 1
	for i, c := range major {
		if c != '0' && (c != '1' || i < last) {
			return false
		}
	}
	return last >= 0 && major[last] == '1'
}

// plainVersion tells whether a version is digits with at most one dot part. No version is.
func plainVersion(version []byte) bool {
	major, minor, dot := bytes.Cut(version, []byte{'.'})
	digits := func(b []byte) bool { return !bytes.ContainsFunc(b, func(c rune) bool { return c < '0' || c > '9' }) }
	return digits(major) && digits(minor) && (!dot || len(minor) > 0)
}

// CheckFetch judges a kv.fetch by itself: version and payload.
func CheckFetch(version []byte, base abi.Base, payload abi.Node) (abi.Reason, string) {
	if !majorOne(version) || !plainVersion(version) {
		return abi.ReasonUnsupportedActionVersion, "unsupported kv.fetch action_version '" + string(version) + "'"
	}
	invalid := func(detail string) (abi.Reason, string) { return abi.ReasonInvalidPayload, detail }
	switch source := base.Lookup(payload, "source_control_endpoint"); {
	case source.Tag == abi.TagString && source.Len > 0, source.Tag == abi.TagNull, source.Tag == abi.TagAbsent:
	default:
		return invalid("source_control_endpoint must be null or a string that is not empty")
	}
	if hashes := base.Lookup(payload, "block_hashes"); hashes.Tag != abi.TagU64s {
		return invalid("block_hashes must be a list of at least one integer in [0, 2^64)")
	}
	switch mode := base.Lookup(payload, "mode"); {
	case mode.Tag == abi.TagAbsent, mode.Tag == abi.TagString && string(base.Bytes(mode)) == "copy":
	default:
		return invalid("mode must be 'copy', which is the only one that is executed")
	}
	switch base.Lookup(payload, "no_retain").Tag {
	case abi.TagAbsent, abi.TagBool:
	default:
		return invalid("no_retain must be a boolean")
	}
	return abi.ReasonNone, ""
}

// CheckRetain judges a kv.retain by itself, as if it were alone in its envelope.
func CheckRetain(version []byte, base abi.Base, payload abi.Node) (abi.Reason, string) {
	var c Check
	return c.addRetain(version, base, payload)
}
