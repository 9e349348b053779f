package hint

import "github.com/kvrt/kvrt/abi"

// Document turns whole JSON or msgpack documents into trees. The zero value is ready.
// One that is used again allocates nothing once dst and its own buffers have grown. It
// keeps these as long as each is below 1 MiB, which does for maps of 20,000 entries.
type Document struct {
	// Limits bounds the document (BodyBytes) and all of dst with the tree (FrameBytes),
	// which takes up to 16 bytes for one byte of the document. Actions means nothing.
	Limits Limits

	d decoder
}

// Append appends the tree of the document src to dst and returns its root, whose base
// is dst: the tree may become a part of a frame that dst holds. On an error, a
// [*MalformedError], dst comes back as it was. Nesting is limited in both encodings, as
// in [abi.CheckTree]; a msgpack document may hold NaN and infinities.
func (t *Document) Append(dst []byte, format Format, src []byte) ([]byte, abi.Node, error) {
	d := &t.d
	was := len(dst)
	lim := t.Limits.withDefaults()
	if err := lim.body("document", src); err != nil {
		return dst, abi.Node{}, err
	}
	d.begin(src, dst, lim.FrameBytes)
	d.msgpack = format == FormatMsgpack
	root, ok := d.whole(format)
	out := d.out
	d.src, d.out = nil, nil
	if !ok {
		return out[:was], abi.Node{}, &MalformedError{What: "document", Offset: d.errPos, Msg: d.errMsg}
	}
	return out, root, nil
}

// CheckBody says that a body is larger than BodyBytes, as Decode and Append do.
func (l Limits) CheckBody(body []byte) error {
	if err := l.withDefaults().body("document", body); err != nil {
		return err
	}
	return nil
}

// whole reads one value that is all of src.
func (d *decoder) whole(format Format) (abi.Node, bool) {
	if msg := d.unreadable(format); msg != "" {
		return abi.Node{}, d.fail(0, msg) >= 0
	}
	root, pos := d.value(0)
	if pos >= 0 && d.tooDeep {
		pos = d.fail(0, msgDeep)
	}
	return root, pos >= 0 && d.end(pos)
}

// unreadable says why src cannot be a document of a format at all.
func (d *decoder) unreadable(format Format) string {
	switch {
	case format == FormatMsgpack:
		return ""
	case format != FormatJSON:
		return "neither JSON nor msgpack"
	case hasBOM(d.src):
		return "a byte order mark, which JSON does not have"
	}
	return ""
}

// AppendTree is [Document.Append] for a single document, under the default limits.
func AppendTree(dst []byte, format Format, src []byte) ([]byte, abi.Node, error) {
	var t Document
	return t.Append(dst, format, src)
}
