;; An envelope of 2^32 - 1 actions in 72 bytes.
;; role: parser
;; expect: rejected handler_error
(module
  (memory (export "memory") 1)
  ;; an Answer: accepted, with a body behind it
  (data (i32.const 0xbc00) "\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\28\00\00\00\48\00\00\00")
  ;; an EnvelopeFrame: kind 3, size 72, actions at 72, count 2^32 - 1
  (data (i32.const 0xbc28) "\03\00\00\00\48\00\00\00")
  (data (i32.const 0xbc40) "\48\00\00\00\ff\ff\ff\ff")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_parse") (param $frame i32) (param $len i32) (result i64)
    ;; The smoke call has {} for a document.
    (if (i32.le_u (i32.load offset=20 (local.get $frame)) (i32.const 2)) (then (return (i64.const -4))))
    (i64.const 0x0000bc0000000070)))
