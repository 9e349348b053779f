package abi

// storeRecords are what kvrt_store reads and kvrt_gpu writes.
func storeRecords() []Record {
	u32 := func(name string, off int, doc string) Field { return Field{name, off, "u32", doc} }
	u64 := func(name string, off int, doc string) Field { return Field{name, off, "u64", doc} }
	return []Record{
		{"StoreClaim", 24, "What kvrt_store.retain is to claim, for a run of a list.", []Field{
			u32("from", 0, "the first block, or token"), u32("to", 4, "the one after the last, or 2^32-1: to the end"),
			u32("priority", 8, "at most 100; 0 takes the scope's claim back"), u32("zero", 12, "0"),
			{"ttl_ms", 16, "u64", "ms from when the claim takes effect, at most 30 days; 0: for as long as the store has the block"}}},
		{"DeviceInfo", 32, "What kvrt_gpu.info writes.", []Field{
			u32("device", 0, "Device"), u32("zero", 4, "0"), u64("block_bytes", 8, "a longer block is not brought"),
			u64("blocks", 16, "that there is room for"), u64("used", 24, "blocks that are there now, those on their way included")}},
	}
}
