;; Walks through its memory so that each instruction misses the cache.
;; expect: rejected handler_out_of_fuel
(module
  (memory (export "memory") 16)
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000008000)) ;; 32 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (if (i32.eqz (local.get $pos)) (then (return (i64.const 0)))) ;; the smoke call too
    (loop $l
      (local.set $len (i32.and (i32.mul (i32.add (local.get $len) (i32.const 4097)) (i32.const 747796405)) (i32.const 0xffff8)))
      (local.set $pos (i32.load (local.get $len)))
      (br $l))
    (unreachable)))
