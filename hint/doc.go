// Package hint is what kvrt carries: KV-cache hint envelopes, their actions and the
// results. It decodes JSON and msgpack straight into the flat frame that guests see
// ([Frame]), encodes the envelope to pass on ([AppendEnvelope]), and offers the same
// things as plain Go values ([Envelope], [Action], [Payload]).
//
// Nothing here runs a guest. [Frame.Decode] is on the path of every hint: it makes one
// pass over the body, builds no intermediate objects, and allocates nothing once a
// frame's buffers have grown.
//
// Integers are exact. A non-negative integer below 2^64 is a u64, a negative one down
// to -2^63 an i64; every other JSON number is a double when a finite double holds its
// magnitude and it is written with a fraction or an exponent, and number text else.
package hint
