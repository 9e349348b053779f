;; Goes back by table alone.
;; expect: out of fuel
;; call: run 1
(module
  (memory (export "memory") 1)
  (func (export "run") (param i32)
    (loop $a (loop $b (br_table $a $b $a (local.get 0))))))
