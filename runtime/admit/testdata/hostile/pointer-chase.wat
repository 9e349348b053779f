;; Loads that depend on each other, all over the memory: what an instruction costs at
;; worst.
;; expect: out of fuel
;; call: run 4
(module
  (memory (export "memory") 16)
  (func (export "run") (param i32)
    (loop
      (local.set 0 (i32.and (i32.add (i32.mul (i32.load (local.get 0)) (i32.const 1664525)) (i32.add (local.get 0) (i32.const 1013904223))) (i32.const 0xffffc)))
      (br 0))))
