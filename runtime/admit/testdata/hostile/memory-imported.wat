;; Another's memory, with a maximum of its own.
;; expect: refused memory/imported
(module
  (import "env" "memory" (memory 1)))
