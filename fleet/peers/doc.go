// Package peers joins the hint store, the block store and the peer protocol: an
// [Exchange] serves the blocks of a store to other kvrts, and fetches from them what
// the hints of requests allow. It is what the daemon runs, and what an embedding
// program may run.
//
// It also brings blocks ahead of need, from a source that an action names: see
// [Exchange.Prefetch].
//
// A source is dialled at the addresses that the allow list pinned when its hint was
// judged, never at one that is looked up later. A source that is a process of this
// machine can be named with the path of its Unix socket, and is then reached there.
package peers
