;; Calls itself in init until the engine's stack would end.
;; expect: refused guest/init calls nested too deep
(module
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func $init (export "kvrt_init") (param i32 i32) (result i64)
    (i64.add (call $init (local.get 0) (local.get 1)) (call $init (local.get 1) (local.get 0))))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (i64.const 0)))
