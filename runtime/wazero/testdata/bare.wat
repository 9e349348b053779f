;; Floors: an empty export, a host call from an empty handler, and ways to end badly.
(module
  (import "kvrt_clock" "now" (func $now (result i64)))
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_idle"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000002000))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param i32 i32 i32) (result i64) (call $now))
  (func (export "kvrt_parse") (param i32 i32) (result i64) (unreachable))
  (func (export "kvrt_formulate") (param i32 i32) (result i64) (loop $l (br $l)) (i64.const 0)))
