;; A table lies outside the memory limit. Grows it for ever.
;; expect: out of fuel
;; call: run
(module
  (memory (export "memory") 1)
  (table 1 externref)
  (func (export "run") (loop (drop (table.grow 0 (ref.null extern) (i32.const 1000))) (br 0))))
