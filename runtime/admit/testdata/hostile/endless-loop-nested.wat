;; The outer loop goes back only through the inner one.
;; expect: out of fuel
;; call: run 0
(module
  (memory (export "memory") 1)
  (func (export "run") (param i32)
    (loop $a (loop $b (br_if $b (local.get 0)) (br $a)))))
