;; Computes in each call for nearly as long as a manifest may ask for: 1.87 million of
;; fuel, some 0.9 ms.
(module
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64) (local $n i32)
    (local.set $n (i32.const 467500))
    (loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i64.const 0)))
