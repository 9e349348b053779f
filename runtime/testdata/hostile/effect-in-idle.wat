;; Hands a hint to the store between calls, on behalf of whom it last saw.
;; expect: accepted
(module
  (import "kvrt_fetch" "submit" (func $submit (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (i64.const 0))
  (func (export "kvrt_idle")
    (drop (call $submit (i32.const 0) (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 0)))))
