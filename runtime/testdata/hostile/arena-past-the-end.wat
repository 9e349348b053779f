;; A buffer whose end is at 2^32 and 2^32 bytes further.
;; expect: refused guest/init kvrt_arena
(module
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x7ffffff8ffffffff))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (i64.const 0)))
