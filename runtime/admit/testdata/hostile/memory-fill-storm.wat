;; Each instruction writes a page.
;; expect: out of fuel
;; call: run
(module
  (memory (export "memory") 1)
  (func (export "run") (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br 0))))
