;; Hands over a hint and answers what the ABI does not allow.
;; expect: rejected handler_error neither 0, a reason of its own
(module
  (import "kvrt_fetch" "submit" (func $submit (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (drop (call $submit (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 0))) (i64.const -1000)))
