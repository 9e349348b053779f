;; Passes a global of its own off as the host's counter.
;; expect: refused export/reserved
(module
  (memory (export "memory") 1)
  (global (export "kvrt:fuel") (mut i64) (i64.const 0)))
