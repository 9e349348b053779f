;; A policy that answers one action, demo.lineage, whose block_hashes are the session's
;; first path on the selected worker (whose id is an integer), or for a retry (attempt is
;; not 0) how many those are. The host writes the path to where the answer needs it. What
;; the index refuses with, it refuses with.
(module
  (import "kvrt_session" "lineage" (func $lineage (param i32 i32 i32 i32 i64 i32 i32 i32) (result i64)))
  (memory (export "memory") 4)
  ;; an Answer, ACCEPTED, with an EnvelopeFrame of one Action behind it; sizes are patched
  (data (i32.const 0x11000) "\01\00\00\00" "\00\00\00\00" "\00\00\00\00\00\00\00\00" "\28\00\00\00")
  (data (i32.const 0x11028) "\03\00\00\00")
  (data (i32.const 0x11040) "\48\00\00\00" "\01\00\00\00")
  (data (i32.const 0x11070) "\50\00\00\00")
  (data (i32.const 0x11088) "\40\00\00\00" "\0c\00\00\00")
  (data (i32.const 0x110a8) "\0a\00\00\00" "\01\00\00\00" "\60\00\00\00")
  (data (i32.const 0x110b8) "demo.lineage" "block_hashes")
  (data (i32.const 0x110d8) "\07\00\00\00" "\0c\00\00\00" "\4c\00\00\00\00\00\00\00" "\0b\00\00\00" "\00\00\00\00" "\98\00\00\00")
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param $size i32) (result i64)
    (if (i32.gt_u (local.get $size) (i32.const 64512)) (then (return (i64.const 0))))
    (i64.or (i64.shl (i64.const 1024) (i64.const 32)) (i64.const 64512)))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_formulate") (param $frame i32) (param $len i32) (result i64)
    (local $got i64) (local $n i32) (local $size i32)
    (if (i32.eqz (i32.load offset=120 (local.get $frame))) (then (return (i64.const 0))))
    (local.set $got (call $lineage
      (i32.add (local.get $frame) (i32.load offset=120 (local.get $frame))) (i32.load offset=124 (local.get $frame))
      (i32.add (local.get $frame) (i32.const 144))
      (select (i32.load offset=160 (local.get $frame)) (i32.const -1) (i32.and (i32.load offset=164 (local.get $frame)) (i32.const 1)))
      (i64.const 0) (i32.const 0) (i32.const 0x110f8) (i32.const 0x20000)))
    (if (i64.lt_s (local.get $got) (i64.const 0)) (then (return (local.get $got))))
    (if (i32.eqz (i32.load (i32.const 0x110fc))) (then (return (i64.const 0))))
    (local.set $n (i32.load (i32.const 0x1110c)))
    ;; the first path begins behind the table of paths, eight bytes for each
    (i32.store8 (i32.const 0x110e8) (i32.const 11))
    (i32.store (i32.const 0x110f0) (i32.add (i32.const 128) (i32.load (i32.const 0x11108))))
    (i32.store (i32.const 0x110ec) (local.get $n))
    (local.set $size (i32.add (i32.const 128) (i32.wrap_i64 (local.get $got))))
    (if (i32.load offset=24 (local.get $frame)) (then
      (i32.store8 (i32.const 0x110e8) (i32.const 3))
      (i32.store (i32.const 0x110f0) (local.get $n))
      (i32.store (i32.const 0x110ec) (i32.const 0))
      (local.set $size (i32.const 128))))
    (i32.store (i32.const 0x11078) (local.get $size))
    (i32.store (i32.const 0x1102c) (i32.add (local.get $size) (i32.const 80)))
    (i32.store (i32.const 0x11014) (i32.add (local.get $size) (i32.const 80)))
    (i64.or (i64.shl (i64.const 0x11000) (i64.const 32)) (i64.extend_i32_u (i32.add (local.get $size) (i32.const 120))))))
