;; A memory without a maximum. kvrt_arena grows it; kvrt_handle loads (0), stores (1)
;; and tells the size (2).
(module
  (memory (export "memory") 1)
  (data (i32.const 8) "kvrt")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.extend_i32_s (memory.grow (local.get 0))))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $op i32) (param $at i32) (param $value i32) (result i64)
    (block $size (block $store (block $load
      (br_table $load $store $size (local.get $op)))
      (return (i64.extend_i32_u (i32.load8_u (local.get $at)))))
      (i32.store8 (local.get $at) (local.get $value))
      (return (i64.const 0)))
    (i64.extend_i32_u (memory.size))))
