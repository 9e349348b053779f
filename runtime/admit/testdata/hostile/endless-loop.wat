;; Never comes back. Without a bound it freezes the whole host process at the next
;; garbage collection.
;; expect: out of fuel
;; call: run
(module
  (memory (export "memory") 1)
  (func (export "run")
    (local i32)
    (loop $again
      (local.set 0 (i32.add (local.get 0) (i32.const 1)))
      (br $again))))
