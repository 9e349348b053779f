;; Asks for a table of 2^32 - 1 entries, and then for less and less.
;; expect: accepted
(module
  (memory (export "memory") 1)
  (table $t 0 funcref)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (local.set $len (i32.const -1))
    (loop $l
      (drop (table.grow $t (ref.null func) (local.get $len)))
      (br_if $l (local.tee $len (i32.shr_u (local.get $len) (i32.const 1)))))
    (i64.const 0)))
