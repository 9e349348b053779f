package hint

import "github.com/kvrt/kvrt/abi"

// AppendSubset appends a frame that lists only the given actions, in that order: what
// one guest gets of an envelope. Every action has a block (its fault is not
// limit_exceeded) and Finish has run. With raw, each block also carries its payload as
// it was sent. When raw is not wanted and all actions are listed, Bytes is the same.
//
// Offsets are relative to the start of the appended frame; len(dst) is a multiple of 8.
func (f *Frame) AppendSubset(dst []byte, actions []int32, raw bool) []byte {
	src := abi.Base(f.d.out)
	start := len(dst)
	dst = append(dst, src[:abi.SizeEnvelopeFrame]...)
	run := func(off uint32) {
		s := abi.GetSpan(src, off)
		if b := src.Run(s); b != nil {
			s.Off = uint32(len(dst) - start)
			dst = append(dst, b...)
			abi.PutSpan(dst[start:], off, s)
		}
	}
	run(abi.OffEnvelopeFrameProtocolVersion)
	run(abi.OffEnvelopeFrameMessageID)
	run(abi.OffEnvelopeFrameRequestID)
	run(abi.OffEnvelopeFrameEngine)
	dst = abi.Align(dst)
	table := len(dst)
	for range actions {
		dst = appendU32(dst, 0)
	}
	dst = abi.Align(dst)
	for k, i := range actions {
		r := &f.acts[i]
		at := len(dst)
		abi.PutU32(dst[table:], uint32(4*k), uint32(at-start))
		dst = append(dst, src[r.off:r.off+r.size]...)
		if raw {
			if body := f.Action(int(i)).RawPayload(); body != nil {
				dst = appendRaw(dst, at, f.format, body)
			}
		}
	}
	frame := dst[start:]
	abi.PutU32(frame, abi.OffEnvelopeFrameActions, uint32(table-start))
	abi.PutU32(frame, abi.OffEnvelopeFrameCount, uint32(len(actions)))
	abi.PutU32(frame, abi.OffEnvelopeFrameSize, uint32(len(frame)))
	return dst
}

// appendRaw adds the payload's bytes to the block at at, which ends dst.
func appendRaw(dst []byte, at int, format Format, body []byte) []byte {
	off := len(dst) - at
	dst = abi.Align(append(dst, body...))
	block := dst[at:]
	abi.PutU32(block, abi.OffActionSize, uint32(len(block)))
	abi.PutSpan(block, abi.OffActionRaw, abi.Span{Off: uint32(off), Len: uint32(len(body))})
	abi.PutU32(block, abi.OffActionRawFormat, uint32(format))
	return dst
}
