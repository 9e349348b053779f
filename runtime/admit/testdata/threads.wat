;; Threads: a shared memory.
(module (memory (export "memory") 1 2 shared))
