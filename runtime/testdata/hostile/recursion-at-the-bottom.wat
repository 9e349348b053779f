;; Goes almost as deep as it may and calls the host there, over and over.
;; expect: rejected handler_out_of_fuel
(module
  (import "kvrt_clock" "now" (func $now (result i64)))
  (memory (export "memory") 1)
  (func $down (param i32)
    (if (local.get 0)
      (then (call $down (i32.sub (local.get 0) (i32.const 1))))
      (else (loop $l (drop (call $now)) (br $l)))))
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (call $down (i32.const 1000)) (i64.const 0)))
