;; Host functions of every type, each reached by its number as the first argument of
;; kvrt_handle. kvrt_arena grows the memory and calls one at once.
(module
  (import "test" "nothing" (func $nothing))
  (import "test" "mix" (func $mix (param i32 i64 i32) (result i64)))
  (import "test" "narrow" (func $narrow (param i32) (result i32)))
  (import "test" "wide" (func $wide (param f32 f64) (result f64)))
  (import "test" "single" (func $single (param f64) (result f32)))
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64)
    (drop (memory.grow (local.get 0)))
    (call $nothing)
    (i64.extend_i32_u (memory.size)))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $op i32) (param $a i32) (param $b i32) (result i64)
    (block $loop (block $single (block $wide (block $narrow (block $mix (block $nothing
      (br_table $nothing $mix $narrow $wide $single $loop (local.get $op)))
      (call $nothing)
      (return (i64.extend_i32_u (i32.load (local.get $a)))))
      (return (call $mix (local.get $a) (i64.mul (i64.extend_i32_s (local.get $b)) (i64.const 0x100000001)) (local.get $b))))
      (return (i64.extend_i32_s (call $narrow (local.get $a)))))
      (return (i64.trunc_f64_s (call $wide (f32.convert_i32_s (local.get $a)) (f64.convert_i32_s (local.get $b))))))
      (return (i64.extend_i32_u (i32.reinterpret_f32 (call $single (f64.convert_i32_s (local.get $a)))))))
    ;; 5: $a calls
    (loop $again
      (call $nothing)
      (br_if $again (local.tee $a (i32.sub (local.get $a) (i32.const 1)))))
    (i64.const 5)))
