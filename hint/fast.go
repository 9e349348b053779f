package hint

import "github.com/kvrt/kvrt/abi"

// Most senders write the fields of envelopes and actions in the same order, all of
// them text. What looks like that is taken in one stride; whatever does not goes
// through the walk from its beginning, which gives the same frame. Keys are compared
// with constants of at most 16 bytes, which takes no call.

// usualEnvelope reads protocol_version and message_id, and returns the position of
// what follows, or 0.
func (f *Frame) usualEnvelope(pos int) int {
	d := &f.d
	out := len(d.out)
	s := d.src[pos:]
	if d.msgpack {
		if len(s) >= 17 && s[0] == mpFixStr|16 && string(s[1:17]) == "protocol_version" {
			if f.protocol, pos = d.usualText(pos + 17); pos > 0 {
				if s = d.src[pos:]; len(s) >= 11 && string(s[:11]) == "\xaamessage_id" {
					if f.message, pos = d.usualText(pos + 11); pos > 0 {
						return pos
					}
				}
			}
		}
	} else if len(s) >= 19 && string(s[:9]) == `"protocol` && string(s[9:19]) == `_version":` {
		if f.protocol, pos = d.usualText(pos + 19); pos > 0 {
			if s = d.src[pos:]; len(s) >= 13 && string(s[:13]) == `"message_id":` {
				if f.message, pos = d.usualText(pos + 13); pos > 0 {
					return pos
				}
			}
		}
	}
	f.protocol, f.message = abi.Span{}, abi.Span{}
	d.out = d.out[:out]
	return 0
}

// usualAction reads an action's id, type and version, and returns the position of its
// payload, or 0.
func (d *decoder) usualAction(pos int, a *fields) int {
	out := len(d.out)
	s := d.src[pos:]
	if d.msgpack {
		if len(s) >= 10 && string(s[:10]) == "\xa9action_id" {
			if a.id, pos = d.usualText(pos + 10); pos > 0 {
				if s = d.src[pos:]; len(s) >= 12 && string(s[:12]) == "\xabaction_type" {
					if a.typ, pos = d.usualText(pos + 12); pos > 0 {
						if s = d.src[pos:]; len(s) >= 15 && string(s[:15]) == "\xaeaction_version" {
							if a.version, pos = d.usualText(pos + 15); pos > 0 {
								if s = d.src[pos:]; len(s) >= 8 && string(s[:8]) == "\xa7payload" {
									return pos + 8
								}
							}
						}
					}
				}
			}
		}
	} else if len(s) >= 12 && string(s[:12]) == `"action_id":` {
		if a.id, pos = d.usualText(pos + 12); pos > 0 {
			if s = d.src[pos:]; len(s) >= 14 && string(s[:14]) == `"action_type":` {
				if a.typ, pos = d.usualText(pos + 14); pos > 0 {
					if s = d.src[pos:]; len(s) >= 17 && s[0] == '"' && string(s[1:17]) == `action_version":` {
						if a.version, pos = d.usualText(pos + 17); pos > 0 {
							if s = d.src[pos:]; len(s) >= 10 && string(s[:10]) == `"payload":` {
								return pos + 10
							}
						}
					}
				}
			}
		}
	}
	a.id, a.typ, a.version = abi.Span{}, abi.Span{}, abi.Span{}
	d.out = d.out[:out]
	return 0
}

// usualText reads a text and goes to the next key, or returns 0.
func (d *decoder) usualText(pos int) (abi.Span, int) {
	var n abi.Node
	if d.msgpack {
		if pos >= len(d.src) || d.src[pos]^mpFixStr >= 32 {
			return abi.Span{}, 0
		}
		n, pos = d.mpShort(pos)
	} else {
		if d.at(pos) == ' ' {
			pos++
		}
		if d.at(pos) != '"' {
			return abi.Span{}, 0
		}
		if n, pos = d.jsonString(pos); d.at(max(pos, 0)) != ',' {
			return abi.Span{}, 0
		}
		if pos++; d.at(pos) == ' ' {
			pos++
		}
	}
	return abi.Span{Off: uint32(n.Val), Len: n.Len}, max(pos, 0)
}
