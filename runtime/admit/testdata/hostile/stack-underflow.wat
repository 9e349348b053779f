;; Takes a value that is not there.
;; expect: refused wasm/operand-type
;; flags: --no-check
(module
  (memory (export "memory") 1)
  (func (export "run") (drop)))
