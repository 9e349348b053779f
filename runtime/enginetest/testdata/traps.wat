;; Each way to trap, by its number as the first argument of kvrt_handle. The other two
;; decide whether it does.
(module
  (type $op (func (param i32 i32) (result i64)))
  (type $other (func (result i64)))
  (memory (export "memory") 1 1)
  (data $passive "0123456789")
  (table $small 4 4 funcref)
  (elem (table $small) (i32.const 0) func $f $g)
  (elem $segment func $f $f)
  (table $ops 64 64 funcref)
  (elem (table $ops) (i32.const 0) func
    $unreachable $load $load.offset $store $load64.edge
    $div_s $div_u $rem_s $rem_u $div64_s $rem64_u
    $trunc.nan $trunc.f32 $trunc.f64 $trunc64
    $call.type $call.null $call.index
    $get $set $fill.table $copy.table $init.table
    $fill $copy $init $init.dropped
    $effects.first $vector)

  (func $unreachable (type $op) (unreachable))
  (func $load (type $op) (i64.extend_i32_u (i32.load (local.get 0))))
  (func $load.offset (type $op) (i64.extend_i32_u (i32.load8_u offset=0xffffffff (local.get 0))))
  (func $store (type $op) (i32.store16 (local.get 0) (local.get 1)) (i64.const 1))
  (func $load64.edge (type $op) (i64.load offset=1 (local.get 0)))
  (func $div_s (type $op) (i64.extend_i32_s (i32.div_s (local.get 0) (local.get 1))))
  (func $div_u (type $op) (i64.extend_i32_u (i32.div_u (local.get 0) (local.get 1))))
  (func $rem_s (type $op) (i64.extend_i32_s (i32.rem_s (local.get 0) (local.get 1))))
  (func $rem_u (type $op) (i64.extend_i32_u (i32.rem_u (local.get 0) (local.get 1))))
  (func $div64_s (type $op) (i64.div_s (i64.shl (i64.extend_i32_s (local.get 0)) (i64.const 32)) (i64.extend_i32_s (local.get 1))))
  (func $rem64_u (type $op) (i64.rem_u (i64.extend_i32_s (local.get 0)) (i64.extend_i32_s (local.get 1))))
  ;; 0/0 is a NaN, x/0 an infinity, anything else a number
  (func $trunc.nan (type $op) (i64.extend_i32_s (i32.trunc_f64_s (f64.div (f64.convert_i32_s (local.get 0)) (f64.convert_i32_s (local.get 1))))))
  (func $trunc.f32 (type $op) (i64.extend_i32_s (i32.trunc_f32_s (f32.mul (f32.convert_i32_s (local.get 0)) (f32.convert_i32_s (local.get 1))))))
  (func $trunc.f64 (type $op) (i64.extend_i32_u (i32.trunc_f64_u (f64.sub (f64.convert_i32_s (local.get 0)) (f64.convert_i32_s (local.get 1))))))
  (func $trunc64 (type $op) (local $x f64)
    (local.set $x (f64.convert_i32_s (local.get 0)))
    (i64.trunc_f64_s (f64.mul (f64.mul (local.get $x) (local.get $x)) (f64.convert_i32_s (local.get 1)))))
  (func $f (type $op) (i64.extend_i32_u (i32.add (local.get 0) (local.get 1))))
  (func $g (type $other) (i64.const 9))
  (func $call.type (type $op) (call_indirect $small (type $other) (local.get 0)))
  (func $call.null (type $op) (call_indirect $small (type $op) (local.get 0) (local.get 1) (local.get 1)))
  (func $call.index (type $op) (call_indirect $ops (type $op) (local.get 0) (local.get 1) (i32.add (local.get 0) (i32.const 64))))
  (func $get (type $op) (i64.extend_i32_u (ref.is_null (table.get $small (local.get 0)))))
  (func $set (type $op) (table.set $small (local.get 0) (ref.null func)) (i64.const 1))
  (func $fill.table (type $op) (table.fill $small (local.get 0) (ref.null func) (local.get 1)) (i64.const 1))
  (func $copy.table (type $op) (table.copy $small $small (i32.const 1) (local.get 0) (local.get 1)) (i64.const 1))
  (func $init.table (type $op) (table.init $small $segment (i32.const 0) (local.get 0) (local.get 1)) (i64.const 1))
  (func $fill (type $op) (memory.fill (local.get 0) (i32.const 7) (local.get 1)) (i64.const 1))
  (func $copy (type $op) (memory.copy (i32.const 8) (local.get 0) (local.get 1)) (i64.const 1))
  (func $init (type $op) (memory.init $passive (i32.const 0) (local.get 0) (local.get 1)) (i64.const 1))
  (func $init.dropped (type $op) (data.drop $passive) (memory.init $passive (i32.const 0) (local.get 0) (local.get 1)) (i64.const 1))
  ;; stores before it traps: what is charged by then is the same everywhere
  (func $effects.first (type $op)
    (loop $l
      (i32.store (i32.const 0) (local.get 0))
      (if (i32.eqz (local.get 0)) (then (unreachable)))
      (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
      (br $l))
    (i64.const 0))
  (func $vector (type $op) (i64x2.extract_lane 1 (v128.load (local.get 0))))

  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param i32 i32 i32) (result i64)
    (call_indirect $ops (type $op) (local.get 1) (local.get 2) (local.get 0))))
