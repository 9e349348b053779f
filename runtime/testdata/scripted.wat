;; A handler whose behaviour is chosen by the first letter of the action's id, so that
;; a test writes envelopes instead of guests.
(module
  (import "kvrt_fetch" "submit" (func $submit (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (global $calls (mut i32) (i32.const 0))
  ;; an Answer: ACCEPTED, detail "version0" at +40
  (data (i32.const 0x11000) "\01\00\00\00\00\00\00\00\28\00\00\00\08\00\00\00")
  (data (i32.const 0x11028) "version0")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param $size i32) (result i64)
    (if (i32.gt_u (local.get $size) (i32.const 64512)) (then (return (i64.const 0))))
    (i64.or (i64.shl (i64.const 1024) (i64.const 32)) (i64.const 64512)))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func $answer (param $off i32) (param $len i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $off)) (i64.const 32)) (i64.extend_i32_u (local.get $len))))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (local $block i32) (local $c i32) (local $size i32)
    (local.set $block (i32.add (local.get $frame)
      (i32.load (i32.add (i32.add (local.get $frame) (i32.load offset=24 (local.get $frame))) (i32.shl (local.get $pos) (i32.const 2))))))
    (local.set $size (i32.load (local.get $block)))
    (if (i32.load offset=12 (local.get $block))
      (then (local.set $c (i32.load8_u (i32.add (local.get $block) (i32.load offset=8 (local.get $block)))))))
    ;; t: trap
    (if (i32.eq (local.get $c) (i32.const 116)) (then (unreachable)))
    ;; l: loop for ever
    (if (i32.eq (local.get $c) (i32.const 108)) (then (loop $l (br $l))))
    ;; r: reject with invalid_payload
    (if (i32.eq (local.get $c) (i32.const 114)) (then (return (i64.const -4))))
    ;; u: a reason that does not exist
    (if (i32.eq (local.get $c) (i32.const 117)) (then (return (i64.const -99))))
    ;; h: a reason that only the host may give (handler_trap)
    (if (i32.eq (local.get $c) (i32.const 104)) (then (return (i64.const -10))))
    ;; d: accept with a detail
    (if (i32.eq (local.get $c) (i32.const 100)) (then (return (call $answer (i32.const 0x11000) (i32.const 48)))))
    ;; b: an answer out of bounds
    (if (i32.eq (local.get $c) (i32.const 98)) (then (return (call $answer (i32.const 0x1fff0) (i32.const 40)))))
    ;; i: an answer at 2^31 - 8
    (if (i32.eq (local.get $c) (i32.const 105)) (then (return (call $answer (i32.const 0x7ffffff8) (i32.const -1)))))
    ;; o: an answer over the frame
    (if (i32.eq (local.get $c) (i32.const 111)) (then (return (call $answer (local.get $frame) (i32.const 64)))))
    ;; k: a short answer
    (if (i32.eq (local.get $c) (i32.const 107)) (then (return (call $answer (i32.const 0x11000) (i32.const 39)))))
    ;; e: an effect, then accept; f: an effect, then reject; g: an effect, then trap
    (if (i32.or (i32.eq (local.get $c) (i32.const 101)) (i32.or (i32.eq (local.get $c) (i32.const 102)) (i32.eq (local.get $c) (i32.const 103))))
      (then
        (drop (call $submit (local.get $block) (i32.const 8) (i32.const 0) (i32.const 0) (i32.const 0)))
        (if (i32.eq (local.get $c) (i32.const 102)) (then (return (i64.const -4))))
        (if (i32.eq (local.get $c) (i32.const 103)) (then (unreachable)))
        (return (i64.const 0))))
    ;; p: the host function panics; x: it refuses; y: it fails for good (by its flags)
    (if (i32.eq (local.get $c) (i32.const 112)) (then (return (i64.extend_i32_s (call $submit (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1))))))
    (if (i32.eq (local.get $c) (i32.const 120)) (then (return (i64.extend_i32_s (call $submit (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 2))))))
    (if (i32.eq (local.get $c) (i32.const 121)) (then (return (i64.extend_i32_s (call $submit (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 4))))))
    ;; w: rewrite: the same action without its payload; v: the same with another id
    (if (i32.or (i32.eq (local.get $c) (i32.const 119)) (i32.eq (local.get $c) (i32.const 118)))
      (then
        (memory.copy (i32.const 0x12000) (local.get $block) (local.get $size))
        (memory.fill (i32.const 0x12030) (i32.const 0) (i32.const 16))
        (if (i32.eq (local.get $c) (i32.const 118))
          (then (i32.store8 (i32.add (i32.const 0x12000) (i32.load offset=8 (local.get $block))) (i32.const 81))))
        (memory.fill (i32.const 0x11fd8) (i32.const 0) (i32.const 40))
        (i32.store (i32.const 0x11fd8) (i32.const 1))
        (i32.store (i32.const 0x11fe8) (i32.const 40))
        (i32.store (i32.const 0x11fec) (local.get $size))
        (return (call $answer (i32.const 0x11fd8) (i32.add (i32.const 40) (local.get $size))))))
    (i64.const 0)))
