;; Divides subnormal numbers, each of which takes the processor as long as a hundred of
;; its other instructions.
;; expect: rejected handler_out_of_fuel
(module
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (local $f f64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (local.set $f (f64.const 0x1p-1030))
    (loop $l
      (local.set $f (f64.div (f64.div (f64.div (f64.div (local.get $f) (f64.const 1.0001)) (f64.const 0.9999)) (f64.const 1.0001)) (f64.const 0.9999)))
      (br $l))
    (unreachable)))
