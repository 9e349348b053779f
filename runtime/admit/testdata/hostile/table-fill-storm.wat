;; Each instruction writes a table.
;; expect: out of fuel
;; call: run
(module
  (memory (export "memory") 1)
  (table 10000 funcref)
  (func (export "run") (loop (table.fill 0 (i32.const 0) (ref.null func) (i32.const 10000)) (br 0))))
