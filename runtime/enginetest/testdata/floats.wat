;; The floating-point instructions.
;; Operands lie at 32, 48 and 64, the result goes to 0; the first argument of kvrt_handle
;; is the number of the instruction.
(module
  (type $op (func))
  (memory (export "memory") 1 1)
  (table funcref (elem
    $f32.abs $f32.neg $f32.ceil $f32.floor $f32.trunc $f32.nearest $f32.sqrt $f32.add
    $f32.sub $f32.mul $f32.div $f32.min $f32.max $f32.copysign $f32.eq $f32.ne
    $f32.lt $f32.gt $f32.le $f32.ge $i32.trunc_f32_s $i32.trunc_sat_f32_s $f32.convert_i32_s $i32.trunc_f32_u
    $i32.trunc_sat_f32_u $f32.convert_i32_u $i64.trunc_f32_s $i64.trunc_sat_f32_s $f32.convert_i64_s $i64.trunc_f32_u $i64.trunc_sat_f32_u $f32.convert_i64_u
    $f64.abs $f64.neg $f64.ceil $f64.floor $f64.trunc $f64.nearest $f64.sqrt $f64.add
    $f64.sub $f64.mul $f64.div $f64.min $f64.max $f64.copysign $f64.eq $f64.ne
    $f64.lt $f64.gt $f64.le $f64.ge $i32.trunc_f64_s $i32.trunc_sat_f64_s $f64.convert_i32_s $i32.trunc_f64_u
    $i32.trunc_sat_f64_u $f64.convert_i32_u $i64.trunc_f64_s $i64.trunc_sat_f64_s $f64.convert_i64_s $i64.trunc_f64_u $i64.trunc_sat_f64_u $f64.convert_i64_u
    $f32.demote_f64 $f64.promote_f32 $i32.reinterpret_f32 $i64.reinterpret_f64 $f32.reinterpret_i32 $f64.reinterpret_i64))
  (func $f32.abs (type $op) (f32.store (i32.const 0) (f32.abs (f32.load (i32.const 32))))) ;; 0
  (func $f32.neg (type $op) (f32.store (i32.const 0) (f32.neg (f32.load (i32.const 32))))) ;; 1
  (func $f32.ceil (type $op) (f32.store (i32.const 0) (f32.ceil (f32.load (i32.const 32))))) ;; 2
  (func $f32.floor (type $op) (f32.store (i32.const 0) (f32.floor (f32.load (i32.const 32))))) ;; 3
  (func $f32.trunc (type $op) (f32.store (i32.const 0) (f32.trunc (f32.load (i32.const 32))))) ;; 4
  (func $f32.nearest (type $op) (f32.store (i32.const 0) (f32.nearest (f32.load (i32.const 32))))) ;; 5
  (func $f32.sqrt (type $op) (f32.store (i32.const 0) (f32.sqrt (f32.load (i32.const 32))))) ;; 6
  (func $f32.add (type $op) (f32.store (i32.const 0) (f32.add (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 7
  (func $f32.sub (type $op) (f32.store (i32.const 0) (f32.sub (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 8
  (func $f32.mul (type $op) (f32.store (i32.const 0) (f32.mul (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 9
  (func $f32.div (type $op) (f32.store (i32.const 0) (f32.div (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 10
  (func $f32.min (type $op) (f32.store (i32.const 0) (f32.min (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 11
  (func $f32.max (type $op) (f32.store (i32.const 0) (f32.max (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 12
  (func $f32.copysign (type $op) (f32.store (i32.const 0) (f32.copysign (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 13
  (func $f32.eq (type $op) (i32.store (i32.const 0) (f32.eq (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 14
  (func $f32.ne (type $op) (i32.store (i32.const 0) (f32.ne (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 15
  (func $f32.lt (type $op) (i32.store (i32.const 0) (f32.lt (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 16
  (func $f32.gt (type $op) (i32.store (i32.const 0) (f32.gt (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 17
  (func $f32.le (type $op) (i32.store (i32.const 0) (f32.le (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 18
  (func $f32.ge (type $op) (i32.store (i32.const 0) (f32.ge (f32.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 19
  (func $i32.trunc_f32_s (type $op) (i32.store (i32.const 0) (i32.trunc_f32_s (f32.load (i32.const 32))))) ;; 20
  (func $i32.trunc_sat_f32_s (type $op) (i32.store (i32.const 0) (i32.trunc_sat_f32_s (f32.load (i32.const 32))))) ;; 21
  (func $f32.convert_i32_s (type $op) (f32.store (i32.const 0) (f32.convert_i32_s (i32.load (i32.const 32))))) ;; 22
  (func $i32.trunc_f32_u (type $op) (i32.store (i32.const 0) (i32.trunc_f32_u (f32.load (i32.const 32))))) ;; 23
  (func $i32.trunc_sat_f32_u (type $op) (i32.store (i32.const 0) (i32.trunc_sat_f32_u (f32.load (i32.const 32))))) ;; 24
  (func $f32.convert_i32_u (type $op) (f32.store (i32.const 0) (f32.convert_i32_u (i32.load (i32.const 32))))) ;; 25
  (func $i64.trunc_f32_s (type $op) (i64.store (i32.const 0) (i64.trunc_f32_s (f32.load (i32.const 32))))) ;; 26
  (func $i64.trunc_sat_f32_s (type $op) (i64.store (i32.const 0) (i64.trunc_sat_f32_s (f32.load (i32.const 32))))) ;; 27
  (func $f32.convert_i64_s (type $op) (f32.store (i32.const 0) (f32.convert_i64_s (i64.load (i32.const 32))))) ;; 28
  (func $i64.trunc_f32_u (type $op) (i64.store (i32.const 0) (i64.trunc_f32_u (f32.load (i32.const 32))))) ;; 29
  (func $i64.trunc_sat_f32_u (type $op) (i64.store (i32.const 0) (i64.trunc_sat_f32_u (f32.load (i32.const 32))))) ;; 30
  (func $f32.convert_i64_u (type $op) (f32.store (i32.const 0) (f32.convert_i64_u (i64.load (i32.const 32))))) ;; 31
  (func $f64.abs (type $op) (f64.store (i32.const 0) (f64.abs (f64.load (i32.const 32))))) ;; 32
  (func $f64.neg (type $op) (f64.store (i32.const 0) (f64.neg (f64.load (i32.const 32))))) ;; 33
  (func $f64.ceil (type $op) (f64.store (i32.const 0) (f64.ceil (f64.load (i32.const 32))))) ;; 34
  (func $f64.floor (type $op) (f64.store (i32.const 0) (f64.floor (f64.load (i32.const 32))))) ;; 35
  (func $f64.trunc (type $op) (f64.store (i32.const 0) (f64.trunc (f64.load (i32.const 32))))) ;; 36
  (func $f64.nearest (type $op) (f64.store (i32.const 0) (f64.nearest (f64.load (i32.const 32))))) ;; 37
  (func $f64.sqrt (type $op) (f64.store (i32.const 0) (f64.sqrt (f64.load (i32.const 32))))) ;; 38
  (func $f64.add (type $op) (f64.store (i32.const 0) (f64.add (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 39
  (func $f64.sub (type $op) (f64.store (i32.const 0) (f64.sub (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 40
  (func $f64.mul (type $op) (f64.store (i32.const 0) (f64.mul (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 41
  (func $f64.div (type $op) (f64.store (i32.const 0) (f64.div (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 42
  (func $f64.min (type $op) (f64.store (i32.const 0) (f64.min (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 43
  (func $f64.max (type $op) (f64.store (i32.const 0) (f64.max (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 44
  (func $f64.copysign (type $op) (f64.store (i32.const 0) (f64.copysign (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 45
  (func $f64.eq (type $op) (i32.store (i32.const 0) (f64.eq (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 46
  (func $f64.ne (type $op) (i32.store (i32.const 0) (f64.ne (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 47
  (func $f64.lt (type $op) (i32.store (i32.const 0) (f64.lt (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 48
  (func $f64.gt (type $op) (i32.store (i32.const 0) (f64.gt (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 49
  (func $f64.le (type $op) (i32.store (i32.const 0) (f64.le (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 50
  (func $f64.ge (type $op) (i32.store (i32.const 0) (f64.ge (f64.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 51
  (func $i32.trunc_f64_s (type $op) (i32.store (i32.const 0) (i32.trunc_f64_s (f64.load (i32.const 32))))) ;; 52
  (func $i32.trunc_sat_f64_s (type $op) (i32.store (i32.const 0) (i32.trunc_sat_f64_s (f64.load (i32.const 32))))) ;; 53
  (func $f64.convert_i32_s (type $op) (f64.store (i32.const 0) (f64.convert_i32_s (i32.load (i32.const 32))))) ;; 54
  (func $i32.trunc_f64_u (type $op) (i32.store (i32.const 0) (i32.trunc_f64_u (f64.load (i32.const 32))))) ;; 55
  (func $i32.trunc_sat_f64_u (type $op) (i32.store (i32.const 0) (i32.trunc_sat_f64_u (f64.load (i32.const 32))))) ;; 56
  (func $f64.convert_i32_u (type $op) (f64.store (i32.const 0) (f64.convert_i32_u (i32.load (i32.const 32))))) ;; 57
  (func $i64.trunc_f64_s (type $op) (i64.store (i32.const 0) (i64.trunc_f64_s (f64.load (i32.const 32))))) ;; 58
  (func $i64.trunc_sat_f64_s (type $op) (i64.store (i32.const 0) (i64.trunc_sat_f64_s (f64.load (i32.const 32))))) ;; 59
  (func $f64.convert_i64_s (type $op) (f64.store (i32.const 0) (f64.convert_i64_s (i64.load (i32.const 32))))) ;; 60
  (func $i64.trunc_f64_u (type $op) (i64.store (i32.const 0) (i64.trunc_f64_u (f64.load (i32.const 32))))) ;; 61
  (func $i64.trunc_sat_f64_u (type $op) (i64.store (i32.const 0) (i64.trunc_sat_f64_u (f64.load (i32.const 32))))) ;; 62
  (func $f64.convert_i64_u (type $op) (f64.store (i32.const 0) (f64.convert_i64_u (i64.load (i32.const 32))))) ;; 63
  (func $f32.demote_f64 (type $op) (f32.store (i32.const 0) (f32.demote_f64 (f64.load (i32.const 32))))) ;; 64
  (func $f64.promote_f32 (type $op) (f64.store (i32.const 0) (f64.promote_f32 (f32.load (i32.const 32))))) ;; 65
  (func $i32.reinterpret_f32 (type $op) (i32.store (i32.const 0) (i32.reinterpret_f32 (f32.load (i32.const 32))))) ;; 66
  (func $i64.reinterpret_f64 (type $op) (i64.store (i32.const 0) (i64.reinterpret_f64 (f64.load (i32.const 32))))) ;; 67
  (func $f32.reinterpret_i32 (type $op) (f32.store (i32.const 0) (f32.reinterpret_i32 (i32.load (i32.const 32))))) ;; 68
  (func $f64.reinterpret_i64 (type $op) (f64.store (i32.const 0) (f64.reinterpret_i64 (i64.load (i32.const 32))))) ;; 69
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param i32 i32 i32) (result i64)
    (call_indirect (type $op) (local.get 0))
    (i64.const 0)))
