;; A handler that is broken in one way, chosen by the parameter frame's guest name:
;; the first letter of the guest's name is read at init.
;; i: init refuses; t: init traps; s: the smoke call traps;
;; o: the smoke call answers out of bounds; l: the smoke call never ends.
(module
  (memory (export "memory") 1)
  (global $how (mut i32) (i32.const 0))
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64)
    (i64.or (i64.shl (i64.const 1024) (i64.const 32)) (i64.const 32768)))
  (func (export "kvrt_init") (param $frame i32) (param i32) (result i64)
    (global.set $how (i32.load8_u (i32.add (local.get $frame) (i32.load offset=16 (local.get $frame)))))
    (if (i32.eq (global.get $how) (i32.const 105)) (then (return (i64.const -4))))
    (if (i32.eq (global.get $how) (i32.const 116)) (then (unreachable)))
    (i64.const 0))
  (func (export "kvrt_handle") (param i32 i32 i32) (result i64)
    (if (i32.eq (global.get $how) (i32.const 115)) (then (unreachable)))
    (if (i32.eq (global.get $how) (i32.const 111)) (then (return (i64.const 0x1000000000001000))))
    (if (i32.eq (global.get $how) (i32.const 108)) (then (loop $l (br $l))))
    (i64.const 0)))
