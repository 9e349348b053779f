// Package worker is the catalogue of a fleet's workers: who they are, what they can
// execute, where their KV events come from and where their blocks can be fetched. It is
// filled from the configuration and by an operator's calls, and read by policies through
// the capability kvrt_worker.
package worker
