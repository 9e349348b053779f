;; 64-bit addresses.
(module (memory (export "memory") i64 1))
