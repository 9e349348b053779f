// Package store keeps KV-cache blocks in host memory.
//
// A block is known by its namespace and its hash. It lies in a slot of a slab: one run of
// memory that the kernel can hand to another process (a memfd on Linux) and that a device
// can pin. Slots have the fixed size of their pool; a block goes into the pool with the
// smallest slots that hold it.
//
// A writer reserves a slot, fills it and commits; nobody sees the block before that, and a
// writer that gives up leaves nothing behind. A reader leases a published block. Bytes of a
// published block never change. What holds for every slot:
//
//   - it is not given to anybody else while it has a lease, a reservation or a transfer
//     in flight, whatever became of the operation that these belong to;
//   - its generation changes before it is written again. It is odd while a block is
//     published in it. It lies in the shared memory too (see [Store.File]), so that a
//     reader in another process can tell that what it has copied was still there;
//   - it goes from one namespace to another only after it was overwritten with zeros.
//
// Leases and reservations are tokens, numbers without a meaning. One that has ended, or
// never was, is refused with [ErrToken], and never touches a slot that somebody else has.
//
// A full pool evicts the block of the lowest priority, and among equals the one that was
// used longest ago. Priorities come from claims ([Store.Retain]): a block has the highest
// of those still in force, each for its own time. A claim is no promise: when everything is
// claimed the least claimed yields. A pin ([Store.Pin]) is.
//
// [Host] offers the store to guests as the capability kvrt_store.
package store
