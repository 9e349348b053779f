;; Divides subnormal numbers, each of which takes the processor as long as a hundred of
;; its other instructions.
;; call: run
;; expect: out of fuel
(module
  (memory (export "memory") 1)
  (func (export "run") (result f64)
    (local $f f64)
    (local.set $f (f64.const 0x1p-1030))
    (loop $l
      (local.set $f (f64.div (f64.div (f64.div (f64.div (local.get $f) (f64.const 1.0001)) (f64.const 0.9999)) (f64.const 1.0001)) (f64.const 0.9999)))
      (br $l))
    (unreachable)))
