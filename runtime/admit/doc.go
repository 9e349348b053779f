// Package admit decides what a WebAssembly module may be before any engine
// sees it, and makes it count what it does. It uses the standard library alone
// and knows neither an engine nor the ABI of a host.
//
// Read is a strict reader of the binary format. It checks the frame of the
// module (header, section order, exact sizes, counts, indices, names), refuses
// every feature that the engines do not run by that feature's name, and applies
// Limits. It never panics, and what it allocates is bounded by the input's own
// length (100 bytes a byte at worst, whatever the limits): a count is compared
// with its limit and with the bytes that remain before anything is made for it.
//
// Module.Validate checks the function bodies, which Read only delimits, by the
// rules of WebAssembly 2.0. The Check methods of Module hold what a host asks of
// a guest on top of that (exports with exact signatures, imports against what is
// offered, one own memory, no start function); they are driven by data of the
// caller.
//
// Rewrite reads, validates and rewrites: what comes out behaves as before, but
// ends within a number of instructions and a depth of calls that the host sets.
//
// # Fuel
//
// The cost model is called fuel/1. Each instruction that is executed costs 1,
// except:
//
//   - block, loop, else, end and nop cost nothing: they execute nothing.
//   - mul, div and sqrt of floating-point numbers and of vectors of them cost 16:
//     subnormal numbers take processors that much longer.
//   - A branch costs 1 more for each value beyond the first that it carries to its
//     label, and block, loop and if for each beyond the first that they take or give,
//     whichever is more: engines move them all.
//   - memory.grow, table.grow and ref.func cost 64. A growth that the maximum
//     allows costs 4,096 a page and 1 a table entry more; one that must fail does
//     not.
//   - memory.fill, memory.copy and memory.init cost 1 more for every 16 bytes,
//     rounded down, whether or not they are in bounds.
//   - table.fill, table.copy and table.init cost 1 more for every entry.
//   - A call costs 1. What a host function costs is for the host to charge:
//     while it runs, the counter is in its global and may be lowered, below 0 as
//     well. It is never called with less than 0.
//
// The counter is lowered in advance, for a stretch of code that is executed as a
// whole unless something traps, and is compared with zero at the entry of a
// function, at the head of a loop, after a call, before a call of the host and at
// an instruction that is charged by length. So
//
//   - a call that needs n ends with at least 0 left exactly if it had at least n,
//     and then exactly n have been used. With less it traps, or returns with the
//     counter below 0: a stretch without a call or loop may run to its end. The
//     host treats both alike.
//   - a call that traps for another reason leaves the counter as it was when a
//     function was last called: the same on every engine, but not exact.
//   - once the fuel is used up, nothing goes on for longer than the longest
//     function takes from top to bottom.
//
// # Depth
//
// Each entry of a function weighs 16 bytes for each of its parameters and locals
// and for the most values that its operand stack holds in code that can run, and
// 64 more, but 144 at least. The counter is what calls may still take. So
// recursion ends at the same call on every engine, long before the engine's own
// stack does.
//
// # Determinism
//
// After rewriting, what a module computes depends on nothing but its imports, its
// arguments and the host's grants:
//
//   - The instructions whose NaN results have open bits (arithmetic, min, max,
//     sqrt, rounding, demotion and promotion, of scalars and of vector lanes) give
//     the canonical NaN wherever its bits could be seen. All others keep the bits
//     that they are given: loads, stores, moves, neg, abs, copysign, pmin, pmax.
//   - memory.grow and table.grow fail beyond the maximum, which is always set. An
//     engine could fail earlier for want of memory: the host should reserve it.
//   - Relaxed vector instructions and threads are refused.
//
// # LEB128
//
// The specification allows an integer to be padded with redundant bytes up to
// the longest form of its width, and stock tools use that: Go's linker writes
// every section size in exactly five bytes, and LLVM leaves every relocated
// operand padded. Such encodings are accepted, in every place. What the
// specification forbids is refused (rule wasm/leb128): more than ceil(width/7)
// bytes, and bits beyond the width in the last byte.
package admit
