;; Asks for what is not offered.
;; expect: refused import/not-offered
(module
  (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1))
