;; A guest that wants a little of everything, chosen by the first letter of the action's
;; id. It hands over an effect first, so that a test sees what becomes of that.
;;
;;   c: 20 calls of a host function    b: 20 lines of 1,000 bytes to copy
;;   l: 20 lines of 5 bytes            d: 20 calls, one in the other
;;   t: 100 entries for its table      o: an answer of 4,000 bytes
;;   f: 10,000 rounds of a loop
;;
;; Its parser answers an envelope of three actions after 10,000 rounds, and its policy
;; nothing, after as many.
(module
  (import "kvrt_fetch" "submit" (func $submit (param i32 i32 i32 i32 i32) (result i32)))
  (import "kvrt_log" "enabled" (func $enabled (param i32) (result i32)))
  (import "kvrt_log" "write" (func $log (param i32 i32 i32)))
  (memory (export "memory") 2)
  (table $t 2 funcref)
  ;; an Answer: ACCEPTED, detail of 3,960 bytes behind it
  (data (i32.const 0x10000) "\01\00\00\00\00\00\00\00\28\00\00\00\78\0f\00\00")
  ;; an Answer: ACCEPTED, with an EnvelopeFrame of 280 bytes: no text, three actions of 64
  (data (i32.const 0x11000) "\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\28\00\00\00\18\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\03\00\00\00\18\01\00\00")
  (data (i32.const 0x11040) "\48\00\00\00\03\00\00\00")
  (data (i32.const 0x11070) "\58\00\00\00\98\00\00\00\d8\00\00\00\00\00\00\00")
  (data (i32.const 0x11080) "\40\00\00\00\00\00\00\00")
  (data (i32.const 0x110c0) "\40\00\00\00\01\00\00\00")
  (data (i32.const 0x11100) "\40\00\00\00\02\00\00\00")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func $spin (param $n i32)
    (loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func $lines (param $n i32) (param $len i32)
    (loop $l
      (call $log (i32.const 1) (i32.const 0x10100) (local.get $len))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
  (func $down (param $n i32)
    (if (local.get $n) (then (call $down (i32.sub (local.get $n) (i32.const 1))))))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (local $block i32) (local $c i32)
    (local.set $block (i32.add (local.get $frame)
      (i32.load (i32.add (i32.add (local.get $frame) (i32.load offset=24 (local.get $frame))) (i32.shl (local.get $pos) (i32.const 2))))))
    (local.set $c (i32.load8_u (i32.add (local.get $block) (i32.load offset=8 (local.get $block)))))
    (if (i32.eq (local.get $c) (i32.const 115)) (then (return (i64.const 0)))) ;; s: the smoke call
    (drop (call $submit (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 0)))
    (local.set $len (i32.const 20))
    (if (i32.eq (local.get $c) (i32.const 99))
      (then (loop $l (drop (call $enabled (i32.const 1))) (br_if $l (local.tee $len (i32.sub (local.get $len) (i32.const 1)))))))
    (if (i32.eq (local.get $c) (i32.const 98)) (then (call $lines (i32.const 20) (i32.const 1000))))
    (if (i32.eq (local.get $c) (i32.const 108)) (then (call $lines (i32.const 20) (i32.const 5))))
    (if (i32.eq (local.get $c) (i32.const 100)) (then (call $down (i32.const 20))))
    (if (i32.eq (local.get $c) (i32.const 116))
      (then (if (i32.lt_s (table.grow $t (ref.null func) (i32.const 100)) (i32.const 0)) (then (return (i64.const -17))))))
    (if (i32.eq (local.get $c) (i32.const 111)) (then (return (i64.const 0x0001000000000fa0))))
    (if (i32.eq (local.get $c) (i32.const 102)) (then (call $spin (i32.const 10000))))
    (i64.const 0))
  (func (export "kvrt_parse") (param i32 i32) (result i64)
    (call $spin (i32.const 10000))
    (i64.const 0x0001100000000140))
  (func (export "kvrt_formulate") (param i32 i32) (result i64) (call $spin (i32.const 10000)) (i64.const 0)))
