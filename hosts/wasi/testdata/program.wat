;; Does with WASI what the action's position says: 0 accepts when the first random byte is
;; odd and otherwise rejects with source_not_allowed, 1 writes and exits with 3, 2 writes
;; two lines in pieces, 3 writes lines without end, 4 writes 1,024 buffers without end,
;; 5 draws random bytes without end, 6 waits for a second, twice, and accepts when the
;; monotonic clock says so.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 16) "hello\nworld\n")
  ;; "hello\nwor" and "ld\n" as two buffers at 64
  (data (i32.const 64) "\10\00\00\00\09\00\00\00\19\00\00\00\03\00\00\00")
  ;; 64 KiB of line feeds as one buffer at 80
  (data (i32.const 80) "\00\00\01\00\00\00\01\00")
  ;; a subscription at 256: one second of clock 1
  (data (i32.const 272) "\01\00\00\00\00\00\00\00\00\ca\9a\3b\00\00\00\00")
  (func (export "_initialize")
    (memory.fill (i32.const 65536) (i32.const 10) (i32.const 65536)))
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64)
    (i64.const 0x0000400000008000)) ;; 32 KiB at 16 KiB
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func $pieces (param $fd i32)
    (drop (call $write (local.get $fd) (i32.const 64) (i32.const 2) (i32.const 8))))
  (func $now (result i64)
    (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 8)))
    (i64.load (i32.const 8)))
  (func $wait
    (drop (call $poll (i32.const 256) (i32.const 512) (i32.const 1) (i32.const 8))))
  (func (export "kvrt_handle") (param $frame i32) (param $len i32) (param $pos i32) (result i64)
    (local $begin i64)
    (if (i32.eq (local.get $pos) (i32.const 1)) (then
      (call $pieces (i32.const 2))
      (drop (call $write (i32.const 2) (i32.const 72) (i32.const 1) (i32.const 8)))
      (call $exit (i32.const 3))))
    (if (i32.eq (local.get $pos) (i32.const 2)) (then
      (call $pieces (i32.const 1))
      (drop (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 8)))
      (return (i64.const 0))))
    (if (i32.eq (local.get $pos) (i32.const 3)) (then
      (loop $on
        (drop (call $write (i32.const 1) (i32.const 80) (i32.const 1) (i32.const 8)))
        (br $on))))
    (if (i32.eq (local.get $pos) (i32.const 4)) (then
      (loop $on
        (drop (call $write (i32.const 1) (i32.const 1024) (i32.const 1024) (i32.const 8)))
        (br $on))))
    (if (i32.eq (local.get $pos) (i32.const 5)) (then
      (loop $on
        (drop (call $random (i32.const 65536) (i32.const 65536)))
        (br $on))))
    (if (i32.eq (local.get $pos) (i32.const 6)) (then
      (local.set $begin (call $now))
      (call $wait)
      (call $wait)
      (return (select (i64.const 0) (i64.const -5)
        (i64.eq (i64.sub (call $now) (local.get $begin)) (i64.const 2000000000))))))
    (drop (call $random (i32.const 128) (i32.const 32)))
    (select (i64.const 0) (i64.const -5) (i32.and (i32.load8_u (i32.const 128)) (i32.const 1)))))
