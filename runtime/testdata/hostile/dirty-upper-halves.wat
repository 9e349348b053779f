;; Arguments that were 64 bits wide a moment before: engines may leave their upper halves as they were.
;; expect: accepted
;; effects: 1
(module
  (import "kvrt_fetch" "submit" (func $submit (param i32 i32 i32 i32 i32) (result i32)))
  (import "kvrt_log" "write" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "tcp://127.0.0.1:1")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (local $high i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (local.set $high (i64.shl (i64.extend_i32_u (i32.or (local.get $len) (i32.const 0x5a5a5a5a))) (i64.const 32)))
    (call $log (i32.wrap_i64 (i64.or (local.get $high) (i64.const 0))) (i32.wrap_i64 (i64.or (local.get $high) (i64.const 512))) (i32.wrap_i64 (i64.or (local.get $high) (i64.const 17))))
    (i64.extend_i32_s (call $submit
      (i32.wrap_i64 (i64.or (local.get $high) (i64.const 512)))
      (i32.wrap_i64 (i64.or (local.get $high) (i64.const 17)))
      (i32.wrap_i64 (i64.or (local.get $high) (i64.const 64)))
      (i32.wrap_i64 (i64.or (local.get $high) (i64.const 3)))
      (i32.wrap_i64 (i64.or (local.get $high) (i64.const 1)))))))
