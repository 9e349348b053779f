;; A loop that carries values goes back by a conditional branch.
;; expect: out of fuel
;; call: run
(module
  (memory (export "memory") 1)
  (func (export "run") (result i64)
    (i64.const 1) (i32.const 1)
    (loop (param i64 i32) (result i64)
      (drop)
      (i64.const 3) (i64.mul)
      (i32.const 1) (i32.const 1)
      (br_if 0)
      (drop))))
