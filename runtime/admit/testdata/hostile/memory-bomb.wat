;; Begins with 4 GiB.
;; expect: refused memory/pages
(module
  (memory (export "memory") 65536))
