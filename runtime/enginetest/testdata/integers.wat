;; The integer instructions.
;; Operands lie at 32, 48 and 64, the result goes to 0; the first argument of kvrt_handle
;; is the number of the instruction.
(module
  (type $op (func))
  (memory (export "memory") 1 1)
  (table funcref (elem
    $i32.clz $i32.ctz $i32.popcnt $i32.add $i32.sub $i32.mul $i32.div_s $i32.div_u
    $i32.rem_s $i32.rem_u $i32.and $i32.or $i32.xor $i32.shl $i32.shr_s $i32.shr_u
    $i32.rotl $i32.rotr $i32.eqz $i32.eq $i32.ne $i32.lt_s $i32.lt_u $i32.gt_s
    $i32.gt_u $i32.le_s $i32.le_u $i32.ge_s $i32.ge_u $i32.extend8_s $i32.extend16_s $i64.clz
    $i64.ctz $i64.popcnt $i64.add $i64.sub $i64.mul $i64.div_s $i64.div_u $i64.rem_s
    $i64.rem_u $i64.and $i64.or $i64.xor $i64.shl $i64.shr_s $i64.shr_u $i64.rotl
    $i64.rotr $i64.eqz $i64.eq $i64.ne $i64.lt_s $i64.lt_u $i64.gt_s $i64.gt_u
    $i64.le_s $i64.le_u $i64.ge_s $i64.ge_u $i64.extend8_s $i64.extend16_s $i64.extend32_s $i32.wrap_i64
    $i64.extend_i32_s $i64.extend_i32_u))
  (func $i32.clz (type $op) (i32.store (i32.const 0) (i32.clz (i32.load (i32.const 32))))) ;; 0
  (func $i32.ctz (type $op) (i32.store (i32.const 0) (i32.ctz (i32.load (i32.const 32))))) ;; 1
  (func $i32.popcnt (type $op) (i32.store (i32.const 0) (i32.popcnt (i32.load (i32.const 32))))) ;; 2
  (func $i32.add (type $op) (i32.store (i32.const 0) (i32.add (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 3
  (func $i32.sub (type $op) (i32.store (i32.const 0) (i32.sub (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 4
  (func $i32.mul (type $op) (i32.store (i32.const 0) (i32.mul (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 5
  (func $i32.div_s (type $op) (i32.store (i32.const 0) (i32.div_s (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 6
  (func $i32.div_u (type $op) (i32.store (i32.const 0) (i32.div_u (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 7
  (func $i32.rem_s (type $op) (i32.store (i32.const 0) (i32.rem_s (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 8
  (func $i32.rem_u (type $op) (i32.store (i32.const 0) (i32.rem_u (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 9
  (func $i32.and (type $op) (i32.store (i32.const 0) (i32.and (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 10
  (func $i32.or (type $op) (i32.store (i32.const 0) (i32.or (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 11
  (func $i32.xor (type $op) (i32.store (i32.const 0) (i32.xor (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 12
  (func $i32.shl (type $op) (i32.store (i32.const 0) (i32.shl (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 13
  (func $i32.shr_s (type $op) (i32.store (i32.const 0) (i32.shr_s (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 14
  (func $i32.shr_u (type $op) (i32.store (i32.const 0) (i32.shr_u (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 15
  (func $i32.rotl (type $op) (i32.store (i32.const 0) (i32.rotl (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 16
  (func $i32.rotr (type $op) (i32.store (i32.const 0) (i32.rotr (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 17
  (func $i32.eqz (type $op) (i32.store (i32.const 0) (i32.eqz (i32.load (i32.const 32))))) ;; 18
  (func $i32.eq (type $op) (i32.store (i32.const 0) (i32.eq (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 19
  (func $i32.ne (type $op) (i32.store (i32.const 0) (i32.ne (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 20
  (func $i32.lt_s (type $op) (i32.store (i32.const 0) (i32.lt_s (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 21
  (func $i32.lt_u (type $op) (i32.store (i32.const 0) (i32.lt_u (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 22
  (func $i32.gt_s (type $op) (i32.store (i32.const 0) (i32.gt_s (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 23
  (func $i32.gt_u (type $op) (i32.store (i32.const 0) (i32.gt_u (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 24
  (func $i32.le_s (type $op) (i32.store (i32.const 0) (i32.le_s (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 25
  (func $i32.le_u (type $op) (i32.store (i32.const 0) (i32.le_u (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 26
  (func $i32.ge_s (type $op) (i32.store (i32.const 0) (i32.ge_s (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 27
  (func $i32.ge_u (type $op) (i32.store (i32.const 0) (i32.ge_u (i32.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 28
  (func $i32.extend8_s (type $op) (i32.store (i32.const 0) (i32.extend8_s (i32.load (i32.const 32))))) ;; 29
  (func $i32.extend16_s (type $op) (i32.store (i32.const 0) (i32.extend16_s (i32.load (i32.const 32))))) ;; 30
  (func $i64.clz (type $op) (i64.store (i32.const 0) (i64.clz (i64.load (i32.const 32))))) ;; 31
  (func $i64.ctz (type $op) (i64.store (i32.const 0) (i64.ctz (i64.load (i32.const 32))))) ;; 32
  (func $i64.popcnt (type $op) (i64.store (i32.const 0) (i64.popcnt (i64.load (i32.const 32))))) ;; 33
  (func $i64.add (type $op) (i64.store (i32.const 0) (i64.add (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 34
  (func $i64.sub (type $op) (i64.store (i32.const 0) (i64.sub (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 35
  (func $i64.mul (type $op) (i64.store (i32.const 0) (i64.mul (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 36
  (func $i64.div_s (type $op) (i64.store (i32.const 0) (i64.div_s (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 37
  (func $i64.div_u (type $op) (i64.store (i32.const 0) (i64.div_u (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 38
  (func $i64.rem_s (type $op) (i64.store (i32.const 0) (i64.rem_s (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 39
  (func $i64.rem_u (type $op) (i64.store (i32.const 0) (i64.rem_u (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 40
  (func $i64.and (type $op) (i64.store (i32.const 0) (i64.and (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 41
  (func $i64.or (type $op) (i64.store (i32.const 0) (i64.or (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 42
  (func $i64.xor (type $op) (i64.store (i32.const 0) (i64.xor (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 43
  (func $i64.shl (type $op) (i64.store (i32.const 0) (i64.shl (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 44
  (func $i64.shr_s (type $op) (i64.store (i32.const 0) (i64.shr_s (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 45
  (func $i64.shr_u (type $op) (i64.store (i32.const 0) (i64.shr_u (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 46
  (func $i64.rotl (type $op) (i64.store (i32.const 0) (i64.rotl (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 47
  (func $i64.rotr (type $op) (i64.store (i32.const 0) (i64.rotr (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 48
  (func $i64.eqz (type $op) (i32.store (i32.const 0) (i64.eqz (i64.load (i32.const 32))))) ;; 49
  (func $i64.eq (type $op) (i32.store (i32.const 0) (i64.eq (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 50
  (func $i64.ne (type $op) (i32.store (i32.const 0) (i64.ne (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 51
  (func $i64.lt_s (type $op) (i32.store (i32.const 0) (i64.lt_s (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 52
  (func $i64.lt_u (type $op) (i32.store (i32.const 0) (i64.lt_u (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 53
  (func $i64.gt_s (type $op) (i32.store (i32.const 0) (i64.gt_s (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 54
  (func $i64.gt_u (type $op) (i32.store (i32.const 0) (i64.gt_u (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 55
  (func $i64.le_s (type $op) (i32.store (i32.const 0) (i64.le_s (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 56
  (func $i64.le_u (type $op) (i32.store (i32.const 0) (i64.le_u (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 57
  (func $i64.ge_s (type $op) (i32.store (i32.const 0) (i64.ge_s (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 58
  (func $i64.ge_u (type $op) (i32.store (i32.const 0) (i64.ge_u (i64.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 59
  (func $i64.extend8_s (type $op) (i64.store (i32.const 0) (i64.extend8_s (i64.load (i32.const 32))))) ;; 60
  (func $i64.extend16_s (type $op) (i64.store (i32.const 0) (i64.extend16_s (i64.load (i32.const 32))))) ;; 61
  (func $i64.extend32_s (type $op) (i64.store (i32.const 0) (i64.extend32_s (i64.load (i32.const 32))))) ;; 62
  (func $i32.wrap_i64 (type $op) (i32.store (i32.const 0) (i32.wrap_i64 (i64.load (i32.const 32))))) ;; 63
  (func $i64.extend_i32_s (type $op) (i64.store (i32.const 0) (i64.extend_i32_s (i32.load (i32.const 32))))) ;; 64
  (func $i64.extend_i32_u (type $op) (i64.store (i32.const 0) (i64.extend_i32_u (i32.load (i32.const 32))))) ;; 65
  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param i32 i32 i32) (result i64)
    (call_indirect (type $op) (local.get 0))
    (i64.const 0)))
