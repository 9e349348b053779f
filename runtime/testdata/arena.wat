;; A handler whose kvrt_arena misbehaves: asked for more than 8,192 bytes it leaves an
;; effect and refuses; for more than 20,000 it traps after one; for more than 30,000 it
;; makes the host fail for good and then hands out a buffer.
(module
  (import "kvrt_fetch" "submit" (func $submit (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param $size i32) (result i64)
    (if (i32.gt_u (local.get $size) (i32.const 30000))
      (then
        (drop (call $submit (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 4)))
        (return (i64.or (i64.shl (i64.const 1024) (i64.const 32)) (i64.const 65536)))))
    (if (i32.gt_u (local.get $size) (i32.const 8192))
      (then
        (drop (call $submit (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
        (if (i32.gt_u (local.get $size) (i32.const 20000)) (then (unreachable)))
        (return (i64.const 0))))
    (i64.or (i64.shl (i64.const 1024) (i64.const 32)) (i64.const 8192)))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param i32 i32 i32) (result i64) (i64.const 0)))
