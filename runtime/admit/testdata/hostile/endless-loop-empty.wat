;; The shortest loop: one branch.
;; expect: out of fuel
;; call: run
(module
  (memory (export "memory") 1)
  (func (export "run") (loop (br 0))))
