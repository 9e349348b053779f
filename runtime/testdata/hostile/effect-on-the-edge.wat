;; Runs of hashes and sources that begin inside of the memory and end outside, or wrap around.
;; expect: rejected invalid_payload outside
(module
  (import "kvrt_fetch" "submit" (func $submit (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (if (i32.eqz (call $submit (i32.const 0) (i32.const 0) (i32.const 65528) (i32.const 2) (i32.const 0))) (then (return (i64.const 0))))
    (if (i32.eqz (call $submit (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 0x20000000) (i32.const 0))) (then (return (i64.const 0))))
    (if (i32.eqz (call $submit (i32.const 0) (i32.const 0) (i32.const -8) (i32.const 2) (i32.const 0))) (then (return (i64.const 0))))
    (if (i32.eqz (call $submit (i32.const 65535) (i32.const -65535) (i32.const 0) (i32.const 1) (i32.const 0))) (then (return (i64.const 0))))
    (i64.extend_i32_s (call $submit (i32.const -1) (i32.const -1) (i32.const -1) (i32.const -1) (i32.const -1)))))
