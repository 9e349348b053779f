;; The shapes of code whose cost is measured plain and rewritten.
(module
  (memory (export "memory") 2)
  ;; A loop that does next to nothing: the worst case of a check at each head.
  (func (export "loop") (param $n i32) (result i32)
    (local $s i32)
    (loop $next
      (local.set $s (i32.add (local.get $s) (i32.xor (local.get $n) (local.get $s))))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $s))
  ;; Two nested loops over bytes.
  (func (export "scan") (param $n i32) (result i32)
    (local $p i32) (local $end i32) (local $quotes i32)
    (loop $again
      (local.set $p (i32.const 0))
      (loop $byte
        (if (i32.eq (i32.load8_u (local.get $p)) (i32.const 0x22))
          (then (local.set $quotes (i32.add (local.get $quotes) (i32.const 1)))))
        (br_if $byte (i32.lt_u (local.tee $p (i32.add (local.get $p) (i32.const 1))) (i32.const 65536))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $quotes))
  (func $fib (export "fib") (param $n i32) (result i32)
    (if (i32.lt_s (local.get $n) (i32.const 2)) (then (return (local.get $n))))
    (i32.add
      (call $fib (i32.sub (local.get $n) (i32.const 1)))
      (call $fib (i32.sub (local.get $n) (i32.const 2)))))
  ;; A tree of calls in which there is no loop.
  (func (export "tree") (param $n i32) (result i32)
    (global.set $leaves (i32.const 0))
    (loop $again
      (call $t0)
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (global.get $leaves))
  (global $leaves (mut i32) (i32.const 0))
  (func $t0 call $t1 call $t1)
  (func $t1 call $t2 call $t2)
  (func $t2 call $t3 call $t3)
  (func $t3 call $t4 call $t4)
  (func $t4 call $t5 call $t5)
  (func $t5 call $t6 call $t6)
  (func $t6 call $t7 call $t7)
  (func $t7 call $t8 call $t8)
  (func $t8 call $t9 call $t9)
  (func $t9 call $leaf call $leaf)
  (func $leaf (global.set $leaves (i32.add (global.get $leaves) (i32.const 1))))
  ;; Floating-point sums: a result that is made canonical in each round.
  (func (export "floats") (param $n i32) (result i32)
    (local $x f64) (local $y f64)
    (local.set $x (f64.const 1.5))
    (loop $next
      (local.set $y (f64.add (f64.mul (local.get $y) (f64.const 0.5)) (f64.div (local.get $x) (f64.convert_i32_s (local.get $n)))))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.trunc_sat_f64_s (local.get $y)))
  ;; One random chain of loads through memory.
  (func (export "chase") (param $n i32) (result i32)
    (local $p i32) (local $i i32)
    (loop $fill
      (i32.store (i32.shl (local.get $i) (i32.const 2))
        (i32.shl (i32.and (i32.add (i32.mul (local.get $i) (i32.const 1664525)) (i32.const 1013904223)) (i32.const 0x3fff)) (i32.const 2)))
      (br_if $fill (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 0x4000))))
    (loop $next
      (local.set $p (i32.load (local.get $p)))
      (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $p)))
