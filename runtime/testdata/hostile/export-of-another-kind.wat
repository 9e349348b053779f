;; The name of an export of the ABI on something that is no function.
;; expect: refused export/kind kvrt_init
(module
  (memory (export "memory") 1)
  (global (export "kvrt_init") i32 (i32.const 0))
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_handle") (param i32 i32 i32) (result i64) (i64.const 0)))
