;; Takes all the memory there is for a larger buffer, then refuses.
;; expect: rejected limit_exceeded
;; bytes: 10000
(module
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param $size i32) (result i64)
    (if (i32.gt_u (local.get $size) (i32.const 8192)) (then (loop $l (br_if $l (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0)))) (return (i64.const 0))))
    (i64.const 0x0000040000002000)) ;; 8 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (i64.const 0)))
