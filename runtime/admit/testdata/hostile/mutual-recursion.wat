;; Two functions call each other for ever, and a third hides it in an if.
;; expect: out of depth
;; call: run 1
(module
  (memory (export "memory") 1)
  (func $a (export "run") (param i32) (result i32) (call $b (i32.add (local.get 0) (i32.const 1))))
  (func $b (param i32) (result i32) (if (result i32) (local.get 0) (then (call $c (local.get 0))) (else (i32.const 0))))
  (func $c (param i32) (result i32) (i32.sub (call $a (local.get 0)) (i32.const 1))))
