;; Lines from outside of the memory, of its whole length, of no UTF-8, and one that is forged to look like two.
;; expect: accepted
;; lines: 2
(module
  (import "kvrt_log" "write" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "\0alevel=ERROR msg=forged\ff\fe")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (call $log (i32.const 1) (i32.const 0) (i32.const -1))
    (call $log (i32.const 1) (i32.const -1) (i32.const 2))
    (call $log (i32.const 1) (i32.const 65535) (i32.const 2))
    (call $log (i32.const 1) (i32.const 512) (i32.const 25))
    (call $log (i32.const 1) (i32.const 512) (i32.const 23))
    (call $log (i32.const 99) (i32.const 40000) (i32.const 20000))
    (i64.const 0)))
