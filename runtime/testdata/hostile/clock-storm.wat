;; Reads the clock in a loop.
;; expect: rejected handler_out_of_fuel
(module
  (import "kvrt_clock" "monotonic" (func $now (result i64)))
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (loop $l (drop (call $now)) (br $l)) (unreachable)))
