;; A policy whose behaviour is chosen by the first letter of the request's id. Any other
;; letter, and with any letter when the word at 0x11004 is not 0: it answers what a test
;; has put at 0x11008, of the length at 0x11000; without a length it has no actions.
(module
  (import "kvrt_fetch" "submit" (func $submit (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0x11000) "\00\00\00\00\00\00\00\00")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param $size i32) (result i64)
    (if (i32.gt_u (local.get $size) (i32.const 64512)) (then (return (i64.const 0))))
    (i64.or (i64.shl (i64.const 1024) (i64.const 32)) (i64.const 64512)))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func $answer (param $off i32) (param $len i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $off)) (i64.const 32)) (i64.extend_i32_u (local.get $len))))
  (func $effect (param $flags i32) (result i32)
    (call $submit (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (local.get $flags)))
  (func (export "kvrt_formulate") (param $frame i32) (param $len i32) (result i64)
    (local $c i32)
    (if (i32.eqz (i32.load (i32.const 0x11004)))
      (then (local.set $c (i32.load8_u (i32.add (local.get $frame) (i32.load offset=16 (local.get $frame)))))))
    ;; t: trap
    (if (i32.eq (local.get $c) (i32.const 116)) (then (unreachable)))
    ;; l: loop for ever
    (if (i32.eq (local.get $c) (i32.const 108)) (then (loop $l (br $l))))
    ;; r: refuse with invalid_payload
    (if (i32.eq (local.get $c) (i32.const 114)) (then (return (i64.const -4))))
    ;; u: a reason that does not exist
    (if (i32.eq (local.get $c) (i32.const 117)) (then (return (i64.const -99))))
    ;; h: a reason that only the host may give (handler_trap)
    (if (i32.eq (local.get $c) (i32.const 104)) (then (return (i64.const -10))))
    ;; b: 10 MiB, which are there; o: over the frame; k: outside of the memory
    (if (i32.eq (local.get $c) (i32.const 98)) (then
      (drop (memory.grow (i32.const 170)))
      (return (call $answer (i32.const 0x20000) (i32.const 0xa00000)))))
    (if (i32.eq (local.get $c) (i32.const 111)) (then (return (call $answer (local.get $frame) (i32.const 64)))))
    (if (i32.eq (local.get $c) (i32.const 107)) (then (return (call $answer (i32.const 0x7ffffff8) (i32.const -1)))))
    ;; e: an effect, and the answer; f: an effect, then refuse; g: an effect, then trap
    (if (i32.eq (local.get $c) (i32.const 101)) (then (drop (call $effect (i32.const 0)))))
    (if (i32.eq (local.get $c) (i32.const 102)) (then (drop (call $effect (i32.const 0))) (return (i64.const -4))))
    (if (i32.eq (local.get $c) (i32.const 103)) (then (drop (call $effect (i32.const 0))) (unreachable)))
    ;; p: the host function panics; x: it refuses; y: it fails for good
    (if (i32.eq (local.get $c) (i32.const 112)) (then (return (i64.extend_i32_s (call $effect (i32.const 1))))))
    (if (i32.eq (local.get $c) (i32.const 120)) (then (return (i64.extend_i32_s (call $effect (i32.const 2))))))
    (if (i32.eq (local.get $c) (i32.const 121)) (then (return (i64.extend_i32_s (call $effect (i32.const 4))))))
    (if (i32.eqz (i32.load (i32.const 0x11000))) (then (return (i64.const 0))))
    (call $answer (i32.const 0x11008) (i32.load (i32.const 0x11000)))))
