// Package fleet keeps the workers of a fleet with what follows from them: a feed of KV
// events for every worker-rank that has an endpoint, and a lineage index for every
// namespace that a feed writes to.
//
// A [Fleet] ties [worker.Catalogue], [kvevents.Manager] and [session.Set] together, so
// that a worker that goes takes its feeds and its lineage along, and a changed endpoint
// restarts the feed of its rank and no other. It is what the daemon runs, and what a
// router that embeds kvrt may run.
//
// Workers come from two sides: [Fleet.Reconcile] with what a configuration says, and
// [Fleet.Put] and [Fleet.Delete] with what an operator, or a controller, says since.
// Reconcile carries out what is different from the configuration before: an entry that
// is the same leaves what was put or deleted since as it is. An entry that is new or
// changed replaces the worker whoever set it; one that has gone takes its worker away,
// unless somebody has put that one since.
package fleet
