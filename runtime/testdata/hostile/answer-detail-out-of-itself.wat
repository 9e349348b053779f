;; A detail that lies outside of the answer, over the host's copy of it.
;; expect: rejected handler_error detail
(module
  (memory (export "memory") 1)
  ;; an Answer: accepted, with a detail of 16 bytes at 2^31
  (data (i32.const 0xbc00) "\01\00\00\00\00\00\00\00\00\00\00\80\10\00\00\00")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (i64.const 0x0000bc0000000028)))
