;; A handler that breaks one rule of the kit, chosen by the first letter of the name
;; that it is loaded under. The smoke call and calls of position 0 always pass, but for
;; the letters that say otherwise.
(module
  (import "kvrt_clock" "now" (func $now (result i64)))
  (memory (export "memory") 1)
  (global $how (mut i32) (i32.const 0))
  (global $calls (mut i32) (i32.const 0))
  (global $refused (mut i32) (i32.const 0))
  (func $is (param $letter i32) (result i32) (i32.eq (global.get $how) (local.get $letter)))
  (func $run (param $off i32) (param $len i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $off)) (i64.const 32)) (i64.extend_i32_u (local.get $len))))
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param $size i32) (result i64)
    ;; r: hands out nothing any more once it has refused
    (if (i32.and (call $is (i32.const 114)) (global.get $refused)) (then (return (i64.const 0))))
    (if (i32.gt_u (local.get $size) (i32.const 16384))
      (then
        (global.set $refused (i32.const 1))
        ;; u: not aligned; m: smaller than asked; x: outside the memory; z: at 0
        (if (call $is (i32.const 117)) (then (return (call $run (i32.const 1028) (local.get $size)))))
        (if (call $is (i32.const 109)) (then (return (call $run (i32.const 1024) (i32.const 16384)))))
        (if (call $is (i32.const 120)) (then (return (call $run (i32.const 65528) (local.get $size)))))
        (if (call $is (i32.const 122)) (then (return (call $run (i32.const 0) (local.get $size)))))
        ;; e: traps; b: never returns
        (if (call $is (i32.const 101)) (then (unreachable)))
        (if (call $is (i32.const 98)) (then (loop $l (br $l))))
        (return (i64.const 0))))
    (call $run (i32.const 1024) (i32.const 16384)))
  (func (export "kvrt_init") (param $frame i32) (param i32) (result i64)
    (global.set $how (i32.load8_u (i32.add (local.get $frame) (i32.load offset=16 (local.get $frame)))))
    (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    ;; s: rejects all calls but the first
    (if (i32.and (call $is (i32.const 115)) (i32.gt_u (global.get $calls) (i32.const 1))) (then (return (i64.const -4))))
    ;; c: costs more with each call
    (if (call $is (i32.const 99)) (then (block $out (loop $l (br_if $l (i32.gt_s (global.get $calls) (i32.const 1000000))))
      (if (i32.gt_u (global.get $calls) (i32.const 1)) (then (drop (call $now)))))))
    ;; w: writes to the frame
    (if (call $is (i32.const 119)) (then (i32.store8 offset=60 (local.get $frame) (i32.const 77))))
    ;; n: looks behind the frame
    (if (i32.and (call $is (i32.const 110)) (i32.eq (i32.load8_u (i32.add (local.get $frame) (local.get $len))) (i32.const 165)))
      (then (return (i64.const -4))))
    ;; d: answers by a clock that moves
    (if (i32.and (call $is (i32.const 100)) (i32.wrap_i64 (i64.and (call $now) (i64.const 1)))) (then (return (i64.const -4))))
    ;; k: accepts everything, and looks at nothing
    (if (call $is (i32.const 107)) (then (return (i64.const 0))))
    ;; y: takes no action type
    (if (call $is (i32.const 121)) (then (return (i64.const -1))))
    (if (local.get $pos)
      (then
        ;; t: traps; f: never returns; a: answers over the frame; q: a reason that does not exist
        (if (call $is (i32.const 116)) (then (unreachable)))
        (if (call $is (i32.const 102)) (then (loop $l (br $l))))
        (if (call $is (i32.const 97)) (then (return (call $run (local.get $frame) (i32.const 40)))))
        (if (call $is (i32.const 113)) (then (return (i64.const -99))))
        ;; g: rejects, so that it is seen to look at something
        (return (i64.const -4))))
    (i64.const 0)))
