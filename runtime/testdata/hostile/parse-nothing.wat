;; Accepts a document and makes nothing of it.
;; role: parser
;; expect: rejected handler_error without an envelope
(module
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_parse") (param $frame i32) (param $len i32) (result i64)
    ;; The smoke call has {} for a document.
    (if (i32.le_u (i32.load offset=20 (local.get $frame)) (i32.const 2)) (then (return (i64.const -4))))
    (i64.const 0)))
