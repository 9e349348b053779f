;; Pays for a growth in the hope that the charge overflows.
;; expect: out of fuel
;; call: run
(module
  (memory (export "memory") 1)
  (func (export "run")
    (loop
      (drop (memory.grow (i32.const -1)))
      (memory.fill (i32.const 0) (i32.const 0) (i32.const 0))
      (br 0))))
