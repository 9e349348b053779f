package vectors

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/kvrt/kvrt/abi"
)

// Reader turns checked bytes into the value notation of README.md, driven by the
// ABI's table.
type Reader struct {
	Table abi.Table
	Seen  map[string]bool // records that were read; may be nil
}

// lists are the fields of a record that refer to a list, and what the list holds.
// FIELD or FIELD_count (for actions: count) tells how many.
var lists = map[string]map[string]struct {
	count, elem string
}{
	"EnvelopeFrame": {"actions": {"count", "Action"}},
	"ContextFrame":  {"candidates": {"candidates_count", "Worker"}, "block_hashes": {"block_hashes_count", "u64"}},
	"Worker":        {"capabilities": {"capabilities_count", "Span"}},
	"Lineage":       {"paths": {"paths_count", "Path"}},
	"Path":          {"hashes": {"hashes_count", "u64"}},
	"Frontiers":     {"frontiers": {"frontiers_count", "Frontier"}},
	"WorkerList":    {"workers": {"workers_count", "Worker"}},
}

// Value returns what a record says, as encoding/json would decode it.
func (r *Reader) Value(record string, b []byte) (any, error) {
	if record == "Node" {
		return r.tree(b, abi.GetNode(b, 0)), nil
	}
	return r.record(record, b, 0)
}

func (r *Reader) saw(record string) {
	if r.Seen != nil {
		r.Seen[record] = true
	}
}

func (r *Reader) record(name string, base []byte, off uint32) (any, error) {
	r.saw(name)
	rec, err := r.find(name)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	counts := map[string]bool{}
	for _, l := range lists[name] {
		counts[l.count] = true
	}
	for _, f := range rec.Fields {
		at := off + uint32(f.Off)
		list, isList := lists[name][f.Name]
		switch {
		case f.Name == "kind" || f.Name == "size" || f.Name == "zero" || counts[f.Name]:
		case isList:
			if out[f.Name], err = r.list(base, at, off+uint32(rec.offset(list.count)), list.elem); err != nil {
				return nil, err
			}
		case f.Type == "Span" && (f.Name == "raw" || f.Name == "body"):
			r.saw("Span")
			out[f.Name] = nil
			if run := abi.Base(base).Run(abi.GetSpan(base, at)); run != nil {
				out[f.Name] = map[string]any{"hex": hex.EncodeToString(run)}
			}
		case f.Type == "Span":
			out[f.Name] = r.text(base, at)
		case f.Type == "Node":
			out[f.Name] = r.tree(base, abi.GetNode(base, at))
		case f.Type == "u32":
			out[f.Name] = strconv.FormatUint(uint64(abi.U32(base, at)), 10)
		case f.Type == "u64":
			out[f.Name] = strconv.FormatUint(abi.U64(base, at), 10)
		default:
			if out[f.Name], err = r.record(f.Type, base, at); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

type record struct{ abi.Record }

func (r record) offset(field string) int {
	for _, f := range r.Fields {
		if f.Name == field {
			return f.Off
		}
	}
	return -1
}

func (r *Reader) find(name string) (record, error) {
	for _, rec := range r.Table.Records {
		if rec.Name == name {
			return record{rec}, nil
		}
	}
	return record{}, fmt.Errorf("no record %q", name)
}

// list reads a list, nil when its offset is 0.
func (r *Reader) list(base []byte, at, countAt uint32, elem string) (any, error) {
	off := abi.U32(base, at)
	if off == 0 {
		return nil, nil
	}
	out := []any{}
	for i := range abi.U32(base, countAt) {
		switch elem {
		case "u64":
			out = append(out, strconv.FormatUint(abi.U64(base, off+8*i), 10))
		case "Span":
			out = append(out, r.text(base, off+8*i))
		case "Worker", "Path", "Frontier":
			rec, err := r.find(elem)
			if err != nil {
				return nil, err
			}
			w, err := r.record(elem, base, off+uint32(rec.Size)*i)
			if err != nil {
				return nil, err
			}
			out = append(out, w)
		case "Action": // a list of offsets; each action is a base of its own
			a := abi.EnvelopeFrame(base).Action(int(i))
			v, err := r.record(elem, a, 0)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
	}
	return out, nil
}

func (r *Reader) text(base []byte, at uint32) any {
	r.saw("Span")
	if run := abi.Base(base).Run(abi.GetSpan(base, at)); run != nil {
		return string(run)
	}
	return nil
}

// tree spells a payload tree: one key, the tag, with the value.
func (r *Reader) tree(base []byte, n abi.Node) any {
	r.saw("Node")
	b := abi.Base(base)
	var v any
	switch n.Tag {
	case abi.TagBool:
		v = n.Bool()
	case abi.TagU64:
		v = strconv.FormatUint(n.U64(), 10)
	case abi.TagI64:
		v = strconv.FormatInt(n.I64(), 10)
	case abi.TagF64:
		v = fmt.Sprintf("%016x", math.Float64bits(n.F64()))
	case abi.TagNumber, abi.TagString:
		v = string(b.Bytes(n))
	case abi.TagBytes:
		v = hex.EncodeToString(b.Bytes(n))
	case abi.TagExt:
		v = []any{strconv.Itoa(int(n.Ext)), hex.EncodeToString(b.Bytes(n))}
	case abi.TagU64s:
		list := []any{}
		for i := range n.Len {
			list = append(list, strconv.FormatUint(b.U64At(n, i), 10))
		}
		v = list
	case abi.TagArray:
		list := []any{}
		for i := range n.Len {
			list = append(list, r.tree(base, b.Elem(n, i)))
		}
		v = list
	case abi.TagMap:
		list := []any{}
		for i := range n.Len {
			r.saw("Entry")
			key, val := b.Entry(n, i)
			list = append(list, []any{r.tree(base, key), r.tree(base, val)})
		}
		v = list
	}
	return map[string]any{n.Tag.String(): v}
}
