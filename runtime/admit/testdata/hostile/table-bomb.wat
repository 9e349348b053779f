;; 34 bytes that take 400 MB for a table.
;; expect: refused limit/table-elements
(module
  (memory (export "memory") 1)
  (table 50000000 funcref))
