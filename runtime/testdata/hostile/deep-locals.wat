;; A function of 200 locals that calls itself: few calls, much stack.
;; expect: rejected handler_trap calls nested too deep
(module
  (memory (export "memory") 1)
  (func $deep (param i64) (result i64) (local i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)
    (local.set 200 (local.get 0))
    (i64.add (call $deep (i64.add (local.get 200) (i64.const 1))) (local.get 199)))
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (call $deep (i64.const 0))))
