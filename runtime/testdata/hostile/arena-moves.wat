;; Hands out a larger buffer elsewhere, which it may.
;; expect: accepted
;; bytes: 10000
(module
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param $size i32) (result i64)
    (if (i32.gt_u (local.get $size) (i32.const 8192)) (then (return (i64.const 0x0000400000008000))))
    (i64.const 0x0000040000002000)) ;; 8 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (i64.const 0)))
