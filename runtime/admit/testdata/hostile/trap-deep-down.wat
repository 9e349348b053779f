;; The counters are left in the middle of five calls.
;; expect: trap integer divide by zero
;; call: run 5
(module
  (memory (export "memory") 1)
  (func $f (export "run") (param i32)
    (drop (i32.div_u (i32.const 1) (local.get 0)))
    (call $f (i32.sub (local.get 0) (i32.const 1)))))
