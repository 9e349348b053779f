;; Calls itself for ever.
;; expect: out of depth
;; call: run
(module
  (memory (export "memory") 1)
  (func $f (export "run") call $f))
