;; Rewrites its action to one whose payload contains itself.
;; expect: rejected handler_error the rewritten action
(module
  (memory (export "memory") 1)
  ;; an Answer: accepted, with a body behind it
  (data (i32.const 0xbc00) "\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\28\00\00\00\60\00\00\00")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (i32.store (i32.const 0xbc28) (i32.const 96)) ;; the action's size
    (i32.store8 offset=48 (i32.const 0xbc28) (i32.const 9)) ;; payload: an array
    (i32.store offset=52 (i32.const 0xbc28) (i32.const 2)) ;; of two nodes
    (i64.store offset=56 (i32.const 0xbc28) (i64.const 64)) ;; behind the record
    (i32.store8 offset=64 (i32.const 0xbc28) (i32.const 9)) ;; of which each is that array
    (i32.store offset=68 (i32.const 0xbc28) (i32.const 2))
    (i64.store offset=72 (i32.const 0xbc28) (i64.const 64))
    (memory.copy (i32.const 0xbc78) (i32.const 0xbc68) (i32.const 16))
    (i64.const 0x0000bc0000000088)))
