;; Logs in a loop.
;; expect: rejected handler_out_of_fuel
;; lines: 16
(module
  (import "kvrt_log" "write" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 512) "again")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (loop $l (call $log (i32.const 1) (i32.const 512) (i32.const 5)) (br $l)) (unreachable)))
