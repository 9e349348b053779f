;; An answer in the frame that the host wrote.
;; expect: rejected handler_error over the frame
(module
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (i32.store (local.get $frame) (i32.const 1))
    (memory.fill (i32.add (local.get $frame) (i32.const 4)) (i32.const 0) (i32.const 36))
    (i64.or (i64.shl (i64.extend_i32_u (local.get $frame)) (i64.const 32)) (i64.const 40))))
