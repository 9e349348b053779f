package abi

// sessionRecords are what kvrt_session and kvrt_worker write. The base of every offset
// is the buffer.
func sessionRecords() []Record {
	u32 := func(name string, off int, doc string) Field { return Field{name, off, "u32", doc} }
	u64 := func(name string, off int, doc string) Field { return Field{name, off, "u64", doc} }
	return []Record{
		{"Lineage", 16, "What kvrt_session.lineage and exclusive write: the Paths, then their blocks. Base: the buffer.", []Field{
			u32("hash_kind", 0, "HashKind of the blocks"), u32("paths_count", 4, "at most 64"),
			u32("paths", 8, "offset of Path[paths_count]"), u32("blocks", 12, "of all paths together")}},
		{"Path", 8, "A run of blocks, each the parent of the next. Base: the buffer.", []Field{
			u32("hashes", 0, "offset of u64[hashes_count], 8-byte aligned"), u32("hashes_count", 4, "blocks, at least one")}},
		{"Frontiers", 16, "What kvrt_session.frontiers writes: the Frontiers, then the texts of workers' ids. Base: the buffer.", []Field{
			u32("hash_kind", 0, "HashKind of the blocks"), u32("frontiers_count", 4, "at least one, at most 64; in no order"),
			u32("frontiers", 8, "offset of Frontier[frontiers_count]"), u32("zero", 12, "0")}},
		{"Frontier", 40, "The deepest known block of a session's chain on a worker. Base: the buffer.", []Field{
			{"worker", 0, "Node", "id of the worker: integer or string"}, u32("dp_rank", 16, "data-parallel rank"), u32("present", 20, "WorkerHas bits: dp_rank"),
			u64("hash", 24, "of the block"), u32("depth", 32, "blocks from the root, this one included"), u32("zero", 36, "0")}},
		{"BlockNode", 32, "What kvrt_session.node writes.", []Field{
			u64("hash", 0, "of the block"), u64("parent", 8, "hash of the block before it, 0 for a root"), u32("has_parent", 16, "0: a root"),
			u32("hash_kind", 20, "HashKind of the block"), u32("frontiers", 24, "that stand on it, over all sessions and workers"), u32("children", 28, "known blocks that follow it")}},
		{"WorkerList", 16, "What kvrt_worker.list writes: the Workers, then what they refer to. Base: the buffer.", []Field{
			u32("workers_count", 0, "one for each rank of each worker"), u32("workers", 4, "offset of Worker[workers_count]"), u64("zero", 8, "0")}},
	}
}

// SetWorker fills the Worker at off of the open record, and appends what it refers to.
func (b *Builder) SetWorker(off uint32, w *Worker) { b.worker(off, w) }
