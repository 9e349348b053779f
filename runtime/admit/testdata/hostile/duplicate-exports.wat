;; Two functions of one name: which is called depends on the reader.
;; expect: refused wasm/duplicate-export
;; flags: --no-check
(module
  (memory (export "memory") 1)
  (func (export "run"))
  (func $f unreachable)
  (export "run" (func $f)))
