package abi

// Kind and size stand at the same place in every frame.
const (
	offKind = OffInitFrameKind
	offSize = OffInitFrameSize
)

// The Begin functions start a frame at buf[:0]; trees are then appended with offsets
// that count from the buffer's start, and the Finish function patches them in:
//
//	b := abi.BeginInit(buf, abi.FeatureRawPayload, "guest")
//	b, root, err := hint.AppendTree(b, format, parameters)
//	b = abi.FinishInit(b, root)
//
// A frame without trees is finished with the zero Node, which is absent.

// BeginInit starts an init frame.
func BeginInit(buf []byte, offered Feature, guest string) []byte {
	b := NewBuilder(buf)
	b.Open(SizeInitFrame)
	b.SetU64(OffInitFrameFeatures, uint64(offered))
	b.SetSpan(OffInitFrameGuestName, b.Optional(guest))
	b.SetU32(OffInitFrameABIMinor, Minor)
	return b.Bytes()
}

// FinishInit ends an init frame.
func FinishInit(b []byte, parameters Node) []byte {
	PutNode(b, OffInitFrameParameters, parameters)
	return finish(b, KindInit)
}

// BeginParse starts a parse frame. An empty request id is absent.
func BeginParse(buf []byte, format Format, raw []byte, requestID, dialect string) []byte {
	b := NewBuilder(buf)
	b.Open(SizeParseFrame)
	b.SetU32(OffParseFrameFormat, uint32(format))
	b.SetSpan(OffParseFrameRaw, b.Run(raw))
	b.SetSpan(OffParseFrameRequestID, b.Optional(requestID))
	b.SetSpan(OffParseFrameDialect, b.Optional(dialect))
	return b.Bytes()
}

// FinishParse ends a parse frame. The document is absent when raw is neither JSON nor msgpack.
func FinishParse(b []byte, document Node) []byte {
	PutNode(b, OffParseFrameDocument, document)
	return finish(b, KindParse)
}

func finish(b []byte, k Kind) []byte {
	b = Align(b)
	PutU32(b, offKind, uint32(k))
	PutU32(b, offSize, uint32(len(b)))
	return b
}
