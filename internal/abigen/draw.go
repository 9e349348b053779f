package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/kvrt/kvrt/abi"
	"github.com/kvrt/kvrt/abi/vectors"
)

// piece is a run of a frame with what it means.
type piece struct {
	at, size int
	what     string
}

// drawing explains a frame byte by byte.
type drawing struct {
	table  abi.Table
	frame  []byte
	pieces []piece
}

// drawFrame draws an envelope of the vectors, such as "envelope/echo".
func drawFrame(t abi.Table, name string) (string, error) {
	file, vector, _ := strings.Cut(name, "/")
	f, err := vectors.Load(file)
	if err != nil {
		return "", err
	}
	for _, v := range f.Vectors {
		if v.Name == vector && f.Record == "EnvelopeFrame" && abi.CheckEnvelope(v.Hex) == nil {
			d := drawing{table: t, frame: v.Hex}
			d.envelope()
			return d.text(), nil
		}
	}
	return "", fmt.Errorf("%s: no envelope to draw", name)
}

func (d *drawing) add(at, size int, format string, args ...any) {
	d.pieces = append(d.pieces, piece{at, size, fmt.Sprintf(format, args...)})
}

func (d *drawing) envelope() {
	d.record("EnvelopeFrame", 0, 0, "")
	f := abi.EnvelopeFrame(d.frame)
	table := int(abi.U32(d.frame, abi.OffEnvelopeFrameActions))
	for i := range f.Count() {
		at := abi.U32(d.frame, uint32(table+4*i))
		d.add(table+4*i, 4, "offset of action %d: %d", i, at)
		d.record("Action", int(at), int(at), "action.")
	}
}

// record draws the fields of a record at a place; offsets count from base.
func (d *drawing) record(name string, at, base int, prefix string) {
	for _, r := range d.table.Records {
		if r.Name != name {
			continue
		}
		for _, f := range r.Fields {
			off, label := at+f.Off, prefix+f.Name
			switch f.Type {
			case "u32":
				d.add(off, 4, "%s = %d", label, abi.U32(d.frame, uint32(off)))
			case "u64":
				d.add(off, 8, "%s = %d", label, abi.U64(d.frame, uint32(off)))
			case "Span":
				d.span(off, base, label)
			case "Node":
				d.node(off, base, label)
			}
		}
	}
}

func (d *drawing) span(at, base int, label string) {
	s := abi.GetSpan(d.frame, uint32(at))
	if !s.Present() {
		d.add(at, 8, "%s: absent", label)
		return
	}
	d.add(at, 8, "%s: offset %d, %d bytes", label, s.Off, s.Len)
	d.bytes(base+int(s.Off), int(s.Len))
}

func (d *drawing) bytes(at, n int) {
	if n > 0 {
		d.add(at, n, "%q", d.frame[at:at+n])
	}
}

func (d *drawing) node(at, base int, label string) {
	n := abi.GetNode(d.frame, uint32(at))
	run := base + int(n.Val)
	switch n.Tag {
	case abi.TagString, abi.TagNumber:
		d.add(at, 16, "%s: tag %d %s, %d bytes at offset %d", label, uint8(n.Tag), n.Tag, n.Len, n.Val)
		d.bytes(run, int(n.Len))
	case abi.TagMap:
		d.add(at, 16, "%s: tag %d map, entries: %d, at offset %d", label, uint8(n.Tag), n.Len, n.Val)
		for i := range int(n.Len) {
			d.node(run+abi.SizeEntry*i, base, fmt.Sprintf("key %d", i))
			d.node(run+abi.SizeEntry*i+abi.OffEntryVal, base, fmt.Sprintf("value %d", i))
		}
	default:
		d.add(at, 16, "%s: tag %d %s", label, uint8(n.Tag), n.Tag)
	}
}

// text lists the pieces in order, eight bytes a line, with the padding between them.
func (d *drawing) text() string {
	sort.SliceStable(d.pieces, func(i, j int) bool { return d.pieces[i].at < d.pieces[j].at })
	var b strings.Builder
	at := 0
	write := func(size int, what string) {
		for line := 0; line < size; line += 8 {
			n := min(8, size-line)
			fmt.Fprintf(&b, "%s\n", strings.TrimRight(fmt.Sprintf("%4d  %-23s  %s", at+line, fmt.Sprintf("% x", d.frame[at+line:at+line+n]), what), " "))
			what = ""
		}
		at += size
	}
	for _, p := range append(d.pieces, piece{at: len(d.frame)}) {
		if p.at > at {
			write(p.at-at, "padding")
		}
		write(p.size, p.what)
	}
	return b.String()
}
