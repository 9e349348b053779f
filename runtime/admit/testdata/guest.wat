;; A guest in the usual shape: an own memory without a maximum, a table, roles.
(module
  (import "kvrt_log" "write" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (table 2 2 funcref)
  (global $next (mut i32) (i32.const 65536))
  (elem (i32.const 0) $init $handle)
  (data (i32.const 1024) "hello")
  (data $later "world")

  (func $init (export "kvrt_init") (param i32 i32) (result i64)
    i64.const 0)

  (func $handle (export "kvrt_handle") (param i32 i32 i32) (result i64)
    (local $a i32) (local $b i32) (local $c i64)
    (drop (call $log (i32.const 0) (i32.const 1024) (i32.const 5)))
    (memory.init $later (i32.const 1024) (i32.const 0) (i32.const 5))
    (local.get $c))

  (func $idle (export "kvrt_idle")
    (local $n f64)
    (global.set $next (i32.const 65536))))
