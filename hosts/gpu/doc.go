// Package gpu moves blocks between host memory and the memory of a device, in batches.
//
// A [Device] is made of a [Driver]: hostmem, which copies in this process, or cuda. It keeps
// what no driver should have to get right by itself: which memory may be touched, for how
// long it must stay, and what became of every batch.
//
//   - A [Region] is a stretch of memory that was registered. It is named by a number with a
//     generation, and a [Span] names regions and offsets, never addresses.
//   - A [Batch] is a list of spans. Before anything is handed to the driver every span is
//     held against its regions, runs that lie side by side at both ends become one copy, and
//     copies that are too long, or cross a border of the memory's registration, are cut.
//     Spans of a batch are copied in any order, so a batch in which one writes what another
//     one reads or writes is refused.
//   - A [Queue] takes batches and never waits. Batches of one queue end in their order; a
//     batch starts after the fences that it is given, whatever their queues.
//   - A [Fence] tells that a batch has ended, and how. A batch is done as a whole or failed;
//     one of which the driver took a part is failed, and its memory is held until that part
//     has ended.
//
// Memory that a batch in flight touches is not released: [Device.Free] refuses new uses at
// once and puts the release off until the last fence has fired. A caller that gives up on a
// batch, because its own deadline passed, must not use the memory again before the fence.
package gpu
