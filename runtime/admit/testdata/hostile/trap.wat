;; A trap of the guest's own is no matter of fuel or depth.
;; expect: trap unreachable
;; call: run
(module
  (memory (export "memory") 1)
  (func (export "run") (unreachable)))
