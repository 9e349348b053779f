;; Asks for the file system, by a function that the stub of WASI does not have.
;; expect: refused import/not-offered wasi_snapshot_preview1.fd_allocate
(module
  (import "wasi_snapshot_preview1" "fd_allocate" (func (param i32 i64 i64) (result i32)))
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (i64.const 0)))
