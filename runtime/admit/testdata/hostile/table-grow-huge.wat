;; One instruction for 800 MB outside of the memory limit.
;; expect: ends 0xffffffff
;; call: run
(module
  (memory (export "memory") 1)
  (table 1 funcref)
  (func (export "run") (result i32) (table.grow 0 (ref.null func) (i32.const 100000000))))
