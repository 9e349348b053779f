;; Asks for what is not offered.
;; expect: refused import/not-offered
(module
  (import "wasi_snapshot_preview1" "fd_allocate" (func (param i32 i64 i64) (result i32)))
  (memory (export "memory") 1))
