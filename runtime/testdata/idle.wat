;; A handler that leaves garbage behind and collects it in kvrt_idle: past 256 calls
;; without one it traps. kvrt_idle traps when there are 512 pieces, and takes 10 fuel or
;; so for each.
(module
  (memory (export "memory") 5)
  (global $garbage (mut i32) (i32.const 0))
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0x0000040000040000)) ;; 256 KiB at 1,024
  (func (export "kvrt_init") (param i32 i32) (result i64) (global.set $garbage (i32.const 500)) (i64.const 0))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (global.set $garbage (i32.add (global.get $garbage) (i32.const 1)))
    (if (i32.gt_u (global.get $garbage) (i32.const 256)) (then (unreachable)))
    (i64.const 0))
  (func (export "kvrt_idle")
    (if (i32.gt_u (global.get $garbage) (i32.const 512)) (then (unreachable)))
    (loop $more
      (if (global.get $garbage) (then
        (global.set $garbage (i32.sub (global.get $garbage) (i32.const 1)))
        (br $more))))))
