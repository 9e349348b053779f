;; A label that does not exist.
;; expect: refused wasm/index
;; flags: --no-check
(module
  (memory (export "memory") 1)
  (func (export "run") (br 7)))
