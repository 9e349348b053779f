// Package fetcher carries fetch hints out: it tells which blocks of a request are
// here, on their way, or may be fetched ([Fetcher.Query]), fetches them from the source
// that the request's hint names ([Fetcher.Fetch]), and hands them on where they are
// wanted ([Fetcher.Deliver]).
//
// Blocks are an ordered list. A source serves a prefix of what it is asked for: the
// first block that it lacks ends the answer, and those behind it have failed. A block
// that two requests want at once is fetched once. What one peer, and one tenant, may
// have under way is capped in bytes.
//
// An operation belongs to nobody's context: it runs to its own deadline, with the slots
// that it reserved, and who waits for it may go. A caller whose deadline is over gets
// its failure at once, and no slot is given back before the transport has let go of it.
//
// A request whose operation did not bring every block is marked failed in the hint
// store, and its [outcome] is partial or failed.
//
// [outcome]: github.com/kvrt/kvrt/hosts/fetch/outcome
package fetcher
