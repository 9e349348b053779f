// Package tier keeps KV-cache blocks in a device's memory, copies of those in a block store,
// and moves blocks between the two and memory that the program has registered.
//
// A [Tier] has a region of device memory of its own, cut into slots of one size. [Tier.Load]
// brings blocks of the store there, [Tier.Save] brings them back; [Tier.Prefetch] is a Load
// that nobody waits for. [Tier.Deliver] and [Tier.Offload] move blocks between the store and
// memory whose layout the caller knows, such as the KV tensors of a serving engine that runs
// in this process: a block is named by its hash, a [Place] says where it goes.
//
// What holds for every block on the way:
//
//   - Both ends are held until the copy has really ended, however long that takes and
//     whoever has given up waiting: a context that ends fails the call, not the copy. Ends
//     are the lease or the reservation in the block store, the slot on the device, and, in
//     package gpu, the regions.
//   - A block is published, in the slot or in the store, when its copy has ended well, and
//     never before. A batch that fails publishes nothing, though a part of it was copied.
//   - A device that is lost may go on writing: a place in host memory that it was writing to
//     is never used again.
//
// Nothing here grows with what is asked for: batches in flight, blocks of one batch, waiting
// prefetches and slots are bounded. A full tier evicts the block that was used longest ago,
// never one that is leased, on its way, or of the list that is being loaded: of a list that is too
// long the first blocks come.
//
// What lies in a slot behind the block's last byte is left of a block before it, whosever that
// was; spans and leases end where the block ends.
//
// [Host] offers the tier to guests as the capability kvrt_gpu.
//
// The region belongs to this process. A serving engine in another process cannot read it
// today; it is where blocks wait near the device, for a program that embeds this package
// and leases them ([Tier.Acquire]), and for tests of the whole path.
package tier
