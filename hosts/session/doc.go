// Package session is the lineage index: which chains of blocks the sessions of a fleet
// have on which worker, and the capability kvrt_session, which lets a policy ask.
//
// An Index holds one routing partition and one kind of block hash; a Set holds the
// indexes of all partitions. It is fed by [Event]s in the order in which they happened.
package session
