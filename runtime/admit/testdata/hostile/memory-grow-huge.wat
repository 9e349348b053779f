;; Asks for 4 GiB at once. It must be told no, at no cost to speak of.
;; expect: ends 0xffffffff
;; call: run
(module
  (memory (export "memory") 1)
  (func (export "run") (result i32) (memory.grow (i32.const 65535))))
