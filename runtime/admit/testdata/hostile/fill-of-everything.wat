;; The longest length: a charge that must not wrap around.
;; expect: out of fuel
;; call: run
(module
  (memory (export "memory") 1)
  (func (export "run") (memory.fill (i32.const 0) (i32.const 0) (i32.const -1))))
