;; A detail of 8 KiB: 512 bytes are kept.
;; expect: accepted
;; detail: 512
(module
  (memory (export "memory") 1)
  ;; an Answer: accepted, with a detail of 8,192 bytes behind it
  (data (i32.const 0xbc00) "\01\00\00\00\00\00\00\00\28\00\00\00\00\20\00\00")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (memory.fill (i32.const 0xbc28) (i32.const 97) (i32.const 8192))
    (i64.const 0x0000bc0000002028)))
