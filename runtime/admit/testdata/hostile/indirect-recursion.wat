;; Calls itself through a table.
;; expect: out of depth
;; call: run
(module
  (memory (export "memory") 1)
  (table 1 funcref)
  (elem (i32.const 0) $f)
  (func $f (export "run") (call_indirect (i32.const 0))))
