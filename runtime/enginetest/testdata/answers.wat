;; A handler that answers each action of an envelope as its position says: it accepts,
;; but traps at 3, never ends at 5, rejects at 7, calls a host function at 9 and runs
;; too deep at 11. State that another instance must not have shows as a trap.
(module
  (import "kvrt_fetch" "discard" (func $discard (result i32)))
  (memory (export "memory") 2)
  (global $busy (mut i32) (i32.const 0))
  (func $deep (param i32) (result i32) (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000010000))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $position i32) (result i64)
    (if (global.get $busy) (then (unreachable)))
    (global.set $busy (i32.const 1))
    (if (i32.eq (local.get $position) (i32.const 3)) (then (unreachable)))
    (if (i32.eq (local.get $position) (i32.const 5)) (then (loop $l (br $l))))
    (if (i32.eq (local.get $position) (i32.const 9)) (then (drop (call $discard))))
    (if (i32.eq (local.get $position) (i32.const 11)) (then (drop (call $deep (i32.const 0)))))
    (global.set $busy (i32.const 0))
    (select (i64.const -4) (i64.const 0) (i32.eq (local.get $position) (i32.const 7)))))
