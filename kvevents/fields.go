package kvevents

// field is a place in an event.
type field uint8

const (
	fieldNone field = iota // known or not, nothing here reads it
	fieldHashes
	fieldParent
	fieldTokens
	fieldBlockSize
	fieldMedium
	fieldGroup
	fieldSpecKind
	fieldWindow
	fieldLocality
	fieldSession
	fieldLora
	fieldSalt
)

func fieldNamed(key []byte) field {
	switch string(key) {
	case "block_hashes":
		return fieldHashes
	case "parent_block_hash":
		return fieldParent
	case "token_ids":
		return fieldTokens
	case "block_size":
		return fieldBlockSize
	case "medium":
		return fieldMedium
	case "group_idx":
		return fieldGroup
	case "kv_cache_spec_kind":
		return fieldSpecKind
	case "kv_cache_spec_sliding_window":
		return fieldWindow
	case "locality":
		return fieldLocality
	case "session_id":
		return fieldSession
	case "lora_name":
		return fieldLora
	case "cache_salt":
		return fieldSalt
	}
	return fieldNone
}

// storedAt and removedAt give the field at a position behind the tag. Only
// fieldNone is behind their ends.
func storedAt(i uint64) field {
	if i < storedTail {
		return [storedTail]field{fieldHashes, fieldParent, fieldTokens, fieldBlockSize,
			fieldNone /* lora_id */, fieldMedium, fieldLora, fieldNone /* extra_keys */}[i]
	}
	return fieldNone
}

func removedAt(i uint64) field {
	if i < 4 {
		return [4]field{fieldHashes, fieldMedium, fieldGroup, fieldLocality}[i]
	}
	return fieldNone
}

// storedTail is the position behind extra_keys, where publishers stop to agree: some
// have multi-modal infos of the blocks there, and then, or at once, follow
// group_idx, kv_cache_spec_kind, kv_cache_spec_sliding_window, locality, ownership
// and session_id, any of them nil or left out at the end.
const storedTail = 8

func tailAt(i uint64) field {
	if i < 6 {
		return [6]field{fieldGroup, fieldSpecKind, fieldWindow, fieldLocality, fieldNone /* ownership */, fieldSession}[i]
	}
	return fieldNone
}

func (d *Decoder) eventArray(e *fields, n uint64) {
	if n == 0 {
		return
	}
	v := d.s.next()
	d.s.drop(v)
	n--
	e.Kind = tag(v)
	switch e.Kind {
	case BlockStored:
		for i := range min(n, storedTail) {
			d.field(e, storedAt(i))
		}
		if n > storedTail {
			d.tail(e, n-storedTail)
		}
	case BlockRemoved:
		for i := range n {
			d.field(e, removedAt(i))
		}
	default:
		d.s.skip(n)
	}
}

// tail reads the n elements behind extra_keys. The group comes first, or second behind
// infos: a list, or a nil that an integer follows.
func (d *Decoder) tail(e *fields, n uint64) {
	if d.infosAhead(n) {
		d.s.skip(1)
		n--
	}
	for i := range n {
		d.field(e, tailAt(i))
	}
}

func (d *Decoder) infosAhead(n uint64) bool {
	ahead := d.s // looks without moving
	switch v := ahead.next(); v.kind {
	case kindArray, kindMap:
		return true
	case kindNil:
		return n > 1 && ahead.next().kind == kindInt
	}
	return false
}
