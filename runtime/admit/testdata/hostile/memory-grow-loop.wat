;; Grows page by page to the limit and goes on asking.
;; expect: out of fuel
;; call: run
(module
  (memory (export "memory") 1)
  (func (export "run") (loop (drop (memory.grow (i32.const 1))) (br 0))))
