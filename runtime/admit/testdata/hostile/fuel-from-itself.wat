;; Sets the global that is going to be the counter.
;; expect: refused wasm/index
;; flags: --no-check
(module
  (memory (export "memory") 1)
  (func (export "run") (global.set 0 (i64.const 0x3fffffffffffffff))))
