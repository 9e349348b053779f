// Package fetch is the native side of kv.fetch hints: which blocks a request may
// fetch, from which source, and which sources the operator allows.
//
// [Store] keeps the hint of each request until the request ends or the hint expires.
// A submit has two halves, so that its effect can wait for the verdict on its action:
// [Store.Prepare] checks and copies and changes nothing, [Pending.Commit] applies.
//
// [AllowList] decides which source endpoints may be named at all. Host names are
// resolved when the list is loaded or refreshed, never while a hint is judged.
//
// [Host] offers both to guests as the capability kvrt_fetch.
//
// Submitting moves no data. Below this package, fetcher carries hints out, peer is the
// protocol between kvrts with its transports, and outcome keeps what became of hints.
//
// What this package promises about a hint:
//
//   - Its key is all of [hint.Identity]: legs share a request id and retries reuse it.
//     Without a request id a hint is accepted and not stored, so nothing is fetched.
//   - A later hint of the same request and the same source replaces the hashes and
//     clears a failure. Another source (none is a source too) is refused, and the
//     hint that is there is kept but failed: the request is not served remotely.
//   - It expires [Config.TTL] after the first submit, which is not renewed. Expired
//     means gone: a miss for queries, room for submits.
//   - Finish and discard free it at once and leave a tombstone for
//     [Config.TombstoneTTL], whether there was a hint or not, since the submit may be
//     late. A tombstone refuses submits with request_finished. It is not renewed
//     either. Each shard keeps a fixed number and drops its oldest for a new one, so
//     a flood of made-up ids costs bounded memory; the price is that a late submit
//     behind such a flood is stored, and then lives until it expires.
package fetch
