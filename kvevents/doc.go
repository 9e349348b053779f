// Package kvevents follows the KV cache events of serving engines and hands them to a
// lineage index: which blocks a worker stored and removed, in the order in which it did.
//
// A publisher (vLLM, SGLang, and whoever does as they do) has a PUB socket of ZeroMQ, whose
// messages are a topic, a sequence number of eight bytes, and a batch in msgpack; and
// perhaps a ROUTER socket that repeats recent batches. A [Manager] keeps a feed for each
// worker-rank. A [Decoder] reads batches, and is of use alone.
//
// # What a feed guarantees
//
//   - Batches reach the sink strictly by number, each at most once. While a hole is replayed,
//     live batches wait in a bounded queue, so that an old event never undoes a newer one.
//   - What is missed, and cannot be had again, clears: the sink is told that the
//     worker-rank holds nothing. So does a batch or a removal that cannot be read. An event
//     with a tag that is not known is passed over and counted.
//   - A sequence that begins anew clears and is followed from its beginning. With a replay
//     endpoint this shows as soon as the publisher is back, though it be idle or past the
//     old number: a replay asks for the last batch that was applied as well, and compares.
//     Without one it shows with the first batch whose number is not the next.
//   - The rank in a batch that differs from the feed's own is counted, and the batch is not
//     applied. A feed that was told no rank takes each batch's; none is not 0.
//   - Nothing of a peer is believed: sizes, counts, rounds, times and queues are bounded by
//     [Config] and [Limits], and nothing blocks but on its own socket.
//
// A batch that was lost shows when the next one comes, or the connection is made again. A
// publisher that is silent for good after one was dropped stays one batch ahead.
//
// # The ZeroMQ library
//
// github.com/go-zeromq/zmq4 makes the handshake, and reads and writes frames. Its sockets
// are not used, for (version 0.17.0): automatic reconnection gives up after ten attempts, or
// sleeps through Close; it has no jitter; without it, a subscriber whose publisher went away
// waits for ever; a reader that nobody reads from is never freed; and nobody is told when
// the next connection stands, which is when to ask for what was missed. Two faults are
// kept from the process here: it reserves as many bytes as a frame's length says, which a
// wrapper around the connection holds to the limit first; and it slices the properties of a
// handshake unchecked, which is recovered from.
//
// Feeds connect. A publisher that connects itself, to one endpoint for a whole fleet, is not
// followed.
package kvevents
