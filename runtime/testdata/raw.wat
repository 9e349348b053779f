;; A handler that chooses the feature raw_payload and accepts with the raw payload as
;; its detail; and a parser whose envelope is its document's raw bytes.
(module
  (memory (export "memory") 1)
  ;; init's Answer: ACCEPTED, features 0xff: unknown bits must be ignored
  (data (i32.const 512) "\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\ff\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64)
    (i64.or (i64.shl (i64.const 1024) (i64.const 32)) (i64.const 16384)))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0x0000020000000028))
  (func $answer (param $status i32) (param $field i32) (param $from i32) (param $len i32) (result i64)
    (memory.fill (i32.const 32768) (i32.const 0) (i32.const 40))
    (i32.store (i32.const 32768) (local.get $status))
    (i32.store (i32.add (i32.const 32768) (local.get $field)) (i32.const 40))
    (i32.store (i32.add (i32.const 32772) (local.get $field)) (local.get $len))
    (memory.copy (i32.const 32808) (local.get $from) (local.get $len))
    (i64.or (i64.shl (i64.const 32768) (i64.const 32)) (i64.extend_i32_u (i32.add (i32.const 40) (local.get $len)))))
  (func (export "kvrt_handle") (param $frame i32) (param i32) (param $pos i32) (result i64)
    (local $block i32)
    (local.set $block (i32.add (local.get $frame)
      (i32.load (i32.add (i32.add (local.get $frame) (i32.load offset=24 (local.get $frame))) (i32.shl (local.get $pos) (i32.const 2))))))
    (call $answer (i32.const 1) (i32.const 8) (i32.add (local.get $block) (i32.load offset=32 (local.get $block))) (i32.load offset=36 (local.get $block))))
  (func (export "kvrt_parse") (param $frame i32) (param i32) (result i64)
    (call $answer (i32.const 1) (i32.const 16) (i32.add (local.get $frame) (i32.load offset=16 (local.get $frame))) (i32.load offset=20 (local.get $frame)))))
