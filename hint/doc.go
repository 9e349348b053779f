// Package hint is what kvrt carries: KV-cache hint envelopes, their actions and the
// results. It decodes JSON and msgpack straight into the flat frame that guests see
// ([Frame]), encodes the envelope to pass on ([AppendEnvelope]), and offers the same
// things as plain Go values ([Envelope], [Action], [Payload]).
//
// Routing contexts go the same way ([Context]), and [Composition] makes one envelope of
// the hints in a context and of what policies add, under the rules of who reads it
// ([Target], [Check]).
//
// Nothing here runs a guest. [Frame.Decode] is on the path of every hint: it makes one
// pass over the body, builds no intermediate objects, and allocates nothing once a
// frame's buffers have grown. However an envelope was written, its frame is the same,
// byte for byte.
//
// # Numbers
//
// Integers are exact: in [0, 2^64) a u64, in [-2^63, 0) an i64. A JSON integer beyond
// that, or a JSON number with a fraction or an exponent that no finite double holds, is
// kept as text; every other number is a double.
//
// # What is malformed
//
// An envelope is refused as a whole when it does not decode, is no mapping, or has no
// list of actions. That includes a string that is not UTF-8, a surrogate without its
// partner, a key twice in one map, a byte order mark, bytes after the document, a
// length that says more than there is, more than 1,024 JSON numbers that take long to
// read exactly (half way between two doubles, or at the limits of what one holds), more
// than four times the allowed actions, and JSON that nests too deep. Keys that mean
// nothing are ignored, but what they hold is checked all the same.
//
// Everything else is the fault of one action ([ActionView.Fault]), msgpack that nests
// too deep and msgpack's NaN and infinities among it.
//
// # Nesting
//
// A payload nests at most 32 maps and lists ([abi.MaxDepth]), of which it is the first;
// a list of u64 does not count, as in [abi.CheckTree]. The same holds for every other
// value of an envelope, each on its own: an id, what a key that means nothing holds, an
// action that is no mapping. So what was decoded can be written and decoded again,
// whatever it lies in. In JSON deeper nesting makes the whole envelope malformed; in
// msgpack only a payload is at fault for it, and what is not kept may nest as it likes:
// it is passed over, with its lengths and its UTF-8 checked.
package hint
