package hint

import "github.com/kvrt/kvrt/abi"

// The readers take the position of what they read and return the position behind it,
// or a negative one after a fault: positions then live in registers.

// space returns the position of the next byte that is not white space, or the end.
func (d *decoder) space(pos int) int {
	if pos < len(d.src) && d.src[pos] > ' ' {
		return pos
	}
	return d.spaceSlow(pos)
}

func (d *decoder) spaceSlow(pos int) int {
	for pos < len(d.src) {
		switch d.src[pos] {
		case ' ', '\t', '\n', '\r':
			pos++
		default:
			return pos
		}
	}
	return pos
}

// at returns the byte at pos, 0 at the end.
func (d *decoder) at(pos int) byte {
	if pos < len(d.src) {
		return d.src[pos]
	}
	return 0
}

// jsonValue reads a value, white space before it included.
func (d *decoder) jsonValue(pos int) (abi.Node, int) {
	pos = d.space(pos)
	switch d.at(pos) {
	case '"':
		return d.jsonString(pos)
	case '{':
		return d.jsonMap(pos)
	case '[':
		return d.jsonArray(pos)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return d.jsonNumber(pos)
	case 'n':
		return abi.Node{Tag: abi.TagNull}, d.literal(pos, "null")
	case 't':
		return abi.Node{Tag: abi.TagBool, Val: 1}, d.literal(pos, "true")
	case 'f':
		return abi.Node{Tag: abi.TagBool}, d.literal(pos, "false")
	}
	return abi.Node{}, d.want(pos, "a value")
}

func (d *decoder) literal(pos int, text string) int {
	rest := d.src[pos:]
	switch {
	case len(rest) >= len(text) && string(rest[:len(text)]) == text:
		return pos + len(text)
	case len(rest) < len(text) && string(rest) == text[:len(rest)]:
		return d.want(len(d.src), text)
	}
	return d.fail(pos, "expected "+text)
}

const (
	msgDeep  = "nested deeper than 32"
	wantKey  = "a string key"
	wantSep  = "',' or '}'"
	wantElem = "',' or ']'"
)

func (d *decoder) jsonMap(start int) (abi.Node, int) {
	if d.depth >= abi.MaxDepth {
		return abi.Node{}, d.fail(start, msgDeep)
	}
	d.depth++
	mark := len(d.nodes)
	pos := d.space(start + 1)
	if d.at(pos) == '}' {
		pos++
	} else if pos = d.jsonEntries(pos); pos < 0 {
		return abi.Node{}, pos
	}
	n, dup := d.closeMap(mark)
	if dup >= 0 {
		return n, d.fail(d.jsonKeyPos(start, dup), msgDuplicate)
	}
	d.depth--
	return n, pos
}

// jsonEntries reads entries up to and including the closing brace.
func (d *decoder) jsonEntries(pos int) int {
	for {
		if pos = d.space(pos); d.at(pos) != '"' {
			return d.want(pos, wantKey)
		}
		key, end := d.jsonString(pos)
		if end < 0 {
			return end
		}
		if pos = d.space(end); d.at(pos) != ':' {
			return d.want(pos, wantColon)
		}
		val, end := d.jsonValue(pos + 1)
		if end < 0 || !d.pushEntry(pos, key, val) {
			return -1
		}
		pos = d.space(end)
		switch d.at(pos) {
		case ',':
			pos++
		case '}':
			return pos + 1
		default:
			return d.want(pos, wantSep)
		}
	}
}

const wantColon = "':'"

// jsonKeyPos finds key number i of the map at start, which is known to be sound.
func (d *decoder) jsonKeyPos(start, i int) int {
	pos := start + 1
	d.slow = 0 // they are read again
	for ; i > 0; i-- {
		_, end := d.jsonString(d.space(pos))
		if end < 0 {
			return start
		}
		if _, end = d.jsonValue(d.space(end) + 1); end < 0 {
			return start
		}
		pos = d.space(end) + 1
	}
	return d.space(pos)
}

func (d *decoder) jsonArray(start int) (abi.Node, int) {
	mark := len(d.nodes)
	pos := d.space(start + 1)
	c := d.at(pos)
	if c-'0' <= 9 || c == '-' { // -0 is a u64
		n, end, all := d.jsonU64s(pos)
		if all || end < 0 {
			return n, end // a u64s does not count as nesting
		}
		pos = end
	}
	if d.depth >= abi.MaxDepth {
		return abi.Node{}, d.fail(start, msgDeep)
	}
	d.depth++
	if c == ']' {
		pos++
	} else if pos = d.jsonElements(pos); pos < 0 {
		return abi.Node{}, pos
	}
	d.depth--
	return d.closeArray(mark), pos
}

// jsonElements reads elements up to and including the closing bracket.
func (d *decoder) jsonElements(pos int) int {
	for {
		n, end := d.jsonValue(pos)
		if end < 0 || !d.push(pos, n) {
			return -1
		}
		pos = d.space(end)
		switch d.at(pos) {
		case ',':
			pos++
		case ']':
			return pos + 1
		default:
			return d.want(pos, wantElem)
		}
	}
}
