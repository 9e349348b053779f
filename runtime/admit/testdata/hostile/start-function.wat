;; Runs at instantiation, before any budget holds.
;; expect: refused start/present
(module
  (memory (export "memory") 1)
  (func $s (loop (br 0)))
  (start $s))
