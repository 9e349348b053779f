// Package outcome keeps what became of accepted fetch hints. A result says at once
// whether a hint is taken; its outcome comes later, and exactly one comes for each:
//
//	completed   every block that it names is here
//	partial     some came, and no more will
//	failed      none came, and none will
//	superseded  a later hint of the same request took its place
//	discarded   its request ended, or its hints were discarded, before it was done
//	expired     its time was over, or the ledger's memory was
//
// A hint is known by its request's identity, its envelope's message id and its index
// in the envelope; action ids are not unique in practice.
//
// Blocks that are brought ahead of need have an outcome too, of the same states but
// superseded and discarded: see [Ledger.Begin].
//
// A [Ledger] keeps the latest hints in a ring of fixed size. What has ended can be asked
// for until the ring comes round; one that is still open when its place is needed has
// expired. So the counts of [Ledger.Stats] always add up:
//
//	Accepted = Open + Completed + Partial + Failed + Superseded + Discarded + Expired
package outcome
