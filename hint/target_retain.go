package hint

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kvrt/kvrt/abi"
)

// Two schemas of kv.retain go by one name and version, and are told apart by their keys:
// {scope, directives} makes a claim over token ranges, the other one over blocks.

// The keys of the schema over blocks.
const (
	keyExecuteAt = 1 << iota
	keyInclude
	keyHashes
	keyPriority
	keyTTL
	keyStart
	keyCount
	keyTokens = 1 << 8 // scope or directives
)

func retainKeys(base abi.Base, payload abi.Node) (keys int) {
	for i := range payload.Len {
		k, _ := base.Entry(payload, i)
		if k.Tag != abi.TagString {
			continue
		}
		switch string(base.Bytes(k)) {
		case "scope", "directives":
			keys |= keyTokens
		case "execute_at":
			keys |= keyExecuteAt
		case "include_current_request":
			keys |= keyInclude
		case "block_hashes":
			keys |= keyHashes
		case "priority":
			keys |= keyPriority
		case "ttl_seconds":
			keys |= keyTTL
		case "current_request_block_start":
			keys |= keyStart
		case "current_request_block_count":
			keys |= keyCount
		}
	}
	return keys
}

// addRetain judges a kv.retain, its number aside, and counts it when it is sound.
func (c *Check) addRetain(version []byte, base abi.Base, payload abi.Node) (abi.Reason, string) {
	if !majorOne(version) {
		return abi.ReasonUnsupportedActionVersion, "unsupported kv.retain action_version '" + string(version) + "'"
	}
	if payload.Tag != abi.TagMap {
		payload = abi.Node{Tag: abi.TagMap}
	}
	switch keys := retainKeys(base, payload); {
	case keys&keyTokens != 0 && keys != keyTokens:
		return abi.ReasonInvalidPayload, "keys of two schemas in one payload: token ranges (scope, directives) or blocks, not both"
	case keys == 0 || keys == keyTokens:
		return c.addRanges(base, payload)
	case c.target.TokenRanges:
		return abi.ReasonInvalidPayload, "the target reads kv.retain over token ranges (scope, directives) alone"
	default:
		if detail := checkBlocks(base, payload, keys); detail != "" {
			return abi.ReasonInvalidPayload, detail
		}
		return abi.ReasonNone, ""
	}
}

// point is where a directive begins, and its priority.
type point struct {
	start    uint64
	tail     bool // the generated tail, behind every start
	priority uint32
}

func (p point) behind(o point) bool {
	return p.tail && !o.tail || p.tail == o.tail && p.start > o.start
}

func (p point) String() string {
	s := "priority " + strconv.Itoa(int(p.priority))
	if p.tail {
		return s + " in the output"
	}
	return s + " at start " + strconv.FormatUint(p.start, 10)
}

// addRanges judges a claim over token ranges.
func (c *Check) addRanges(base abi.Base, payload abi.Node) (abi.Reason, string) {
	invalid := func(detail string) (abi.Reason, string) { return abi.ReasonInvalidPayload, detail }
	scope := base.Lookup(payload, "scope")
	var text []byte
	switch scope.Tag {
	case abi.TagAbsent, abi.TagNull:
	case abi.TagString:
		text = base.Bytes(scope)
	default:
		return invalid("scope must be a string or null")
	}
	list := base.Lookup(payload, "directives")
	switch list.Tag {
	case abi.TagArray:
	case abi.TagU64s:
		return invalid("each directive must be an object")
	default:
		return invalid("directives must be a list")
	}
	if c.directives+int(list.Len) > MaxDirectives {
		return abi.ReasonLimitExceeded, "at most 128 directives per envelope"
	}
	c.trial = append(c.trial[:0], c.order...)
	for i := range list.Len {
		p, detail := directive(base, base.Elem(list, i))
		if detail != "" {
			return invalid(detail)
		}
		// Of those that begin at the same token, the earlier one comes first. Most come in
		// order and go to the end.
		at := len(c.trial)
		for at > 0 && c.trial[at-1].behind(p) {
			at--
		}
		c.trial = slices.Insert(c.trial, at, p)
	}
	if c.scoped && ((text == nil) != (c.scope == nil) || !bytes.Equal(text, c.scope)) {
		return invalid("kv.retain actions in one envelope must share a scope")
	}
	for i := 1; i < len(c.trial); i++ {
		if last, next := c.trial[i-1], c.trial[i]; next.priority > last.priority {
			return invalid("priorities must be non-increasing across token positions (prefix-cache constraint): " + next.String() + " is above " + last.String())
		}
	}
	c.order, c.trial = c.trial, c.order
	c.directives += int(list.Len)
	if !c.scoped {
		c.scoped, c.scope = true, nil
		if scope.Tag == abi.TagString {
			c.scopeBuf = append(append(c.scopeBuf[:0], text...), 0)
			c.scope = c.scopeBuf[:len(text)] // not nil
		}
	}
	return abi.ReasonNone, ""
}

// directive judges one directive.
func directive(base abi.Base, n abi.Node) (p point, detail string) {
	if n.Tag != abi.TagMap {
		return p, "each directive must be an object"
	}
	var priority, start, end, duration, output abi.Node
	for i := range n.Len {
		k, v := base.Entry(n, i)
		var key []byte
		if k.Tag == abi.TagString {
			key = base.Bytes(k)
		}
		switch string(key) {
		case "priority":
			priority = v
		case "start":
			start = v
		case "end":
			end = v
		case "duration":
			duration = v
		case "covers_output":
			output = v
		default:
			return p, unknownFields(base, n)
		}
	}
	if priority.Tag != abi.TagU64 || priority.Val > 100 {
		return p, "priority must be an integer in [0, 100]"
	}
	p.priority = uint32(priority.Val)
	if start.Tag != abi.TagAbsent && start.Tag != abi.TagU64 {
		return p, "start must be a non-negative integer"
	}
	p.start = start.Val
	if end.Tag != abi.TagAbsent && end.Tag != abi.TagNull && (end.Tag != abi.TagU64 || end.Val <= p.start) {
		return p, "end must be null or an integer greater than start"
	}
	if !validDuration(duration) {
		return p, "duration must be null or a number in [0, 2.592e+06]"
	}
	switch {
	case output.Tag != abi.TagAbsent && output.Tag != abi.TagBool:
		return p, "covers_output must be a boolean"
	case output.Bool() && (start.Tag != abi.TagAbsent || end.Tag != abi.TagAbsent):
		return p, "covers_output cannot be combined with start or end"
	}
	p.tail = output.Bool()
	return p, ""
}

// maxDuration is 30 days in seconds.
const maxDuration = 2_592_000

func validDuration(n abi.Node) bool {
	switch n.Tag {
	case abi.TagAbsent, abi.TagNull:
		return true
	case abi.TagU64:
		return n.Val <= maxDuration
	case abi.TagF64:
		return n.F64() >= 0 && n.F64() <= maxDuration // false for NaN
	}
	return false
}

// unknownFields names what a directive must not hold; the first sixteen.
func unknownFields(base abi.Base, n abi.Node) string {
	var names []string
	for i := range n.Len {
		k, _ := base.Entry(n, i)
		name := gotOf(k.Tag).String()
		if k.Tag == abi.TagString {
			name = string(base.Bytes(k)[:min(k.Len, pathKeyBytes)])
			switch name {
			case "priority", "start", "end", "duration", "covers_output":
				continue
			}
		}
		if names = append(names, "'"+strings.ToValidUTF8(name, "")+"'"); len(names) == 16 {
			break
		}
	}
	slices.Sort(names)
	return "unknown directive fields: [" + strings.Join(names, ", ") + "]"
}

// checkBlocks judges a claim over blocks. keys are those that it has.
func checkBlocks(base abi.Base, p abi.Node, keys int) (detail string) {
	get := func(key string) abi.Node { return base.Lookup(p, key) }
	if at := get("execute_at"); at.Tag != abi.TagString || string(base.Bytes(at)) != "request_completion" {
		return "execute_at must be 'request_completion'"
	}
	include := get("include_current_request")
	if include.Tag != abi.TagBool {
		return "include_current_request must be a boolean"
	}
	hashes := get("block_hashes")
	switch hashes.Tag {
	case abi.TagU64s:
	case abi.TagArray:
		list := base[uint32(hashes.Val):][:hashes.Len*abi.SizeNode]
		for i := range hashes.Len {
			if e := abi.GetNode(list, i*abi.SizeNode); e.Tag != abi.TagU64 && (e.Tag != abi.TagString || !decimalHash(base.Bytes(e))) {
				return "block_hashes[" + strconv.Itoa(int(i)) + "] must be an integer in [0, 2^64), or its decimal text without leading zeros"
			}
		}
	default:
		return "block_hashes must be a list"
	}
	if get("priority").Tag != abi.TagU64 {
		return "priority must be an integer in [0, 2^64)"
	}
	ttl := get("ttl_seconds")
	if f := ttl.F64(); !(ttl.Tag == abi.TagU64 && ttl.Val > 0 || ttl.Tag == abi.TagF64 && f > 0 && !math.IsInf(f, 0)) {
		return "ttl_seconds must be a finite number greater than 0"
	}
	switch keys & (keyStart | keyCount) {
	case 0:
		if hashes.Len == 0 && !include.Bool() {
			return "block_hashes must not be empty unless include_current_request is true"
		}
		return ""
	case keyStart, keyCount:
		return "current_request_block_start and current_request_block_count go together"
	}
	start, count := get("current_request_block_start"), get("current_request_block_count")
	switch {
	case start.Tag != abi.TagU64:
		return "current_request_block_start must be an integer in [0, 2^64)"
	case count.Tag != abi.TagU64 || count.Val == 0:
		return "current_request_block_count must be a positive integer"
	case start.Val+count.Val < start.Val:
		return "the blocks from current_request_block_start on must end below 2^64"
	case hashes.Len > 0 || include.Bool():
		return "current_request_block_start needs empty block_hashes and include_current_request false"
	}
	return ""
}

// decimalHash tells whether a text is a hash as the schema over blocks spells it.
func decimalHash(text []byte) bool {
	n := len(text)
	switch {
	case n == 0 || n > 20 || n > 1 && text[0] == '0':
		return false
	case n == 20 && (text[0] != '1' || text[1] >= '8') && string(text) > "18446744073709551615":
		return false
	case n >= 8: // eight at once, and those in the middle twice
		first, _ := notDigits(binary.LittleEndian.Uint64(text))
		last, _ := notDigits(binary.LittleEndian.Uint64(text[n-8:]))
		if n > 16 {
			mid, _ := notDigits(binary.LittleEndian.Uint64(text[8:]))
			last |= mid
		}
		return first|last == 0
	}
	for _, c := range text {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}
