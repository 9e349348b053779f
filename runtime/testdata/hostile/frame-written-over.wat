;; Erases the frame in its first call: its own later calls see that, and nobody else.
;; expect: rejected invalid_payload
(module
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (i32.load (local.get $frame))) (then (return (i64.const -4))))
    (memory.fill (local.get $frame) (i32.const 0) (local.get $len))
    (i64.const 0)))
