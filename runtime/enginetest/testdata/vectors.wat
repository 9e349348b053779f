;; The vector instructions.
;; Operands lie at 32, 48 and 64, the result goes to 0; the first argument of kvrt_handle
;; is the number of the instruction.
(module
  (type $op (func))
  (memory (export "memory") 1 1)
  (table funcref (elem
    $v128.not $v128.and $v128.andnot $v128.or $v128.xor $v128.bitselect $v128.any_true $i8x16.splat
    $i8x16.extract_lane_s_15 $i8x16.extract_lane_u_15 $i8x16.replace_lane_1 $i16x8.splat $i16x8.extract_lane_s_7 $i16x8.extract_lane_u_7 $i16x8.replace_lane_1 $i32x4.splat
    $i32x4.extract_lane_3 $i32x4.replace_lane_1 $i64x2.splat $i64x2.extract_lane_1 $i64x2.replace_lane_1 $f32x4.splat $f32x4.extract_lane_3 $f32x4.replace_lane_1
    $f64x2.splat $f64x2.extract_lane_1 $f64x2.replace_lane_1 $i8x16.swizzle $i8x16.shuffle_0_31_1_30_2_29_3_28_15_16_14_17_13_18_12_19 $i8x16.abs $i8x16.neg $i8x16.add
    $i8x16.sub $i8x16.eq $i8x16.ne $i8x16.lt_s $i8x16.lt_u $i8x16.gt_s $i8x16.gt_u $i8x16.le_s
    $i8x16.le_u $i8x16.ge_s $i8x16.ge_u $i8x16.min_s $i8x16.min_u $i8x16.max_s $i8x16.max_u $i8x16.shl
    $i8x16.shr_s $i8x16.shr_u $i8x16.all_true $i8x16.bitmask $i16x8.abs $i16x8.neg $i16x8.add $i16x8.sub
    $i16x8.mul $i16x8.eq $i16x8.ne $i16x8.lt_s $i16x8.lt_u $i16x8.gt_s $i16x8.gt_u $i16x8.le_s
    $i16x8.le_u $i16x8.ge_s $i16x8.ge_u $i16x8.min_s $i16x8.min_u $i16x8.max_s $i16x8.max_u $i16x8.shl
    $i16x8.shr_s $i16x8.shr_u $i16x8.all_true $i16x8.bitmask $i32x4.abs $i32x4.neg $i32x4.add $i32x4.sub
    $i32x4.mul $i32x4.eq $i32x4.ne $i32x4.lt_s $i32x4.lt_u $i32x4.gt_s $i32x4.gt_u $i32x4.le_s
    $i32x4.le_u $i32x4.ge_s $i32x4.ge_u $i32x4.min_s $i32x4.min_u $i32x4.max_s $i32x4.max_u $i32x4.shl
    $i32x4.shr_s $i32x4.shr_u $i32x4.all_true $i32x4.bitmask $i64x2.abs $i64x2.neg $i64x2.add $i64x2.sub
    $i64x2.mul $i64x2.eq $i64x2.ne $i64x2.lt_s $i64x2.gt_s $i64x2.le_s $i64x2.ge_s $i64x2.shl
    $i64x2.shr_s $i64x2.shr_u $i64x2.all_true $i64x2.bitmask $i8x16.add_sat_s $i8x16.add_sat_u $i8x16.sub_sat_s $i8x16.sub_sat_u
    $i8x16.avgr_u $i16x8.add_sat_s $i16x8.add_sat_u $i16x8.sub_sat_s $i16x8.sub_sat_u $i16x8.avgr_u $i8x16.popcnt $i16x8.q15mulr_sat_s
    $i32x4.dot_i16x8_s $i8x16.narrow_i16x8_s $i8x16.narrow_i16x8_u $i16x8.narrow_i32x4_s $i16x8.narrow_i32x4_u $i16x8.extend_low_i8x16_s $i16x8.extmul_low_i8x16_s $i16x8.extend_high_i8x16_s
    $i16x8.extmul_high_i8x16_s $i16x8.extadd_pairwise_i8x16_s $i16x8.extend_low_i8x16_u $i16x8.extmul_low_i8x16_u $i16x8.extend_high_i8x16_u $i16x8.extmul_high_i8x16_u $i16x8.extadd_pairwise_i8x16_u $i32x4.extend_low_i16x8_s
    $i32x4.extmul_low_i16x8_s $i32x4.extend_high_i16x8_s $i32x4.extmul_high_i16x8_s $i32x4.extadd_pairwise_i16x8_s $i32x4.extend_low_i16x8_u $i32x4.extmul_low_i16x8_u $i32x4.extend_high_i16x8_u $i32x4.extmul_high_i16x8_u
    $i32x4.extadd_pairwise_i16x8_u $i64x2.extend_low_i32x4_s $i64x2.extmul_low_i32x4_s $i64x2.extend_high_i32x4_s $i64x2.extmul_high_i32x4_s $i64x2.extend_low_i32x4_u $i64x2.extmul_low_i32x4_u $i64x2.extend_high_i32x4_u
    $i64x2.extmul_high_i32x4_u $f32x4.abs $f32x4.neg $f32x4.sqrt $f32x4.ceil $f32x4.floor $f32x4.trunc $f32x4.nearest
    $f32x4.add $f32x4.sub $f32x4.mul $f32x4.div $f32x4.min $f32x4.max $f32x4.pmin $f32x4.pmax
    $f32x4.eq $f32x4.ne $f32x4.lt $f32x4.gt $f32x4.le $f32x4.ge $f64x2.abs $f64x2.neg
    $f64x2.sqrt $f64x2.ceil $f64x2.floor $f64x2.trunc $f64x2.nearest $f64x2.add $f64x2.sub $f64x2.mul
    $f64x2.div $f64x2.min $f64x2.max $f64x2.pmin $f64x2.pmax $f64x2.eq $f64x2.ne $f64x2.lt
    $f64x2.gt $f64x2.le $f64x2.ge $f32x4.demote_f64x2_zero $f64x2.promote_low_f32x4 $i32x4.trunc_sat_f32x4_s $i32x4.trunc_sat_f32x4_u $i32x4.trunc_sat_f64x2_s_zero
    $i32x4.trunc_sat_f64x2_u_zero $f32x4.convert_i32x4_s $f32x4.convert_i32x4_u $f64x2.convert_low_i32x4_s $f64x2.convert_low_i32x4_u
    $v128.load8x8_s $v128.load8x8_u $v128.load16x4_s $v128.load16x4_u $v128.load32x2_s $v128.load32x2_u $v128.load8_splat $v128.load16_splat
    $v128.load32_splat $v128.load64_splat $v128.load32_zero $v128.load64_zero $v128.load8_lane $v128.store8_lane $v128.load16_lane $v128.store16_lane
    $v128.load32_lane $v128.store32_lane $v128.load64_lane $v128.store64_lane))
  (func $v128.not (type $op) (v128.store (i32.const 0) (v128.not (v128.load (i32.const 32))))) ;; 0
  (func $v128.and (type $op) (v128.store (i32.const 0) (v128.and (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 1
  (func $v128.andnot (type $op) (v128.store (i32.const 0) (v128.andnot (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 2
  (func $v128.or (type $op) (v128.store (i32.const 0) (v128.or (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 3
  (func $v128.xor (type $op) (v128.store (i32.const 0) (v128.xor (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 4
  (func $v128.bitselect (type $op) (v128.store (i32.const 0) (v128.bitselect (v128.load (i32.const 32)) (v128.load (i32.const 48)) (v128.load (i32.const 64))))) ;; 5
  (func $v128.any_true (type $op) (i32.store (i32.const 0) (v128.any_true (v128.load (i32.const 32))))) ;; 6
  (func $i8x16.splat (type $op) (v128.store (i32.const 0) (i8x16.splat (i32.load (i32.const 32))))) ;; 7
  (func $i8x16.extract_lane_s_15 (type $op) (i32.store (i32.const 0) (i8x16.extract_lane_s 15 (v128.load (i32.const 32))))) ;; 8
  (func $i8x16.extract_lane_u_15 (type $op) (i32.store (i32.const 0) (i8x16.extract_lane_u 15 (v128.load (i32.const 32))))) ;; 9
  (func $i8x16.replace_lane_1 (type $op) (v128.store (i32.const 0) (i8x16.replace_lane 1 (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 10
  (func $i16x8.splat (type $op) (v128.store (i32.const 0) (i16x8.splat (i32.load (i32.const 32))))) ;; 11
  (func $i16x8.extract_lane_s_7 (type $op) (i32.store (i32.const 0) (i16x8.extract_lane_s 7 (v128.load (i32.const 32))))) ;; 12
  (func $i16x8.extract_lane_u_7 (type $op) (i32.store (i32.const 0) (i16x8.extract_lane_u 7 (v128.load (i32.const 32))))) ;; 13
  (func $i16x8.replace_lane_1 (type $op) (v128.store (i32.const 0) (i16x8.replace_lane 1 (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 14
  (func $i32x4.splat (type $op) (v128.store (i32.const 0) (i32x4.splat (i32.load (i32.const 32))))) ;; 15
  (func $i32x4.extract_lane_3 (type $op) (i32.store (i32.const 0) (i32x4.extract_lane 3 (v128.load (i32.const 32))))) ;; 16
  (func $i32x4.replace_lane_1 (type $op) (v128.store (i32.const 0) (i32x4.replace_lane 1 (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 17
  (func $i64x2.splat (type $op) (v128.store (i32.const 0) (i64x2.splat (i64.load (i32.const 32))))) ;; 18
  (func $i64x2.extract_lane_1 (type $op) (i64.store (i32.const 0) (i64x2.extract_lane 1 (v128.load (i32.const 32))))) ;; 19
  (func $i64x2.replace_lane_1 (type $op) (v128.store (i32.const 0) (i64x2.replace_lane 1 (v128.load (i32.const 32)) (i64.load (i32.const 48))))) ;; 20
  (func $f32x4.splat (type $op) (v128.store (i32.const 0) (f32x4.splat (f32.load (i32.const 32))))) ;; 21
  (func $f32x4.extract_lane_3 (type $op) (f32.store (i32.const 0) (f32x4.extract_lane 3 (v128.load (i32.const 32))))) ;; 22
  (func $f32x4.replace_lane_1 (type $op) (v128.store (i32.const 0) (f32x4.replace_lane 1 (v128.load (i32.const 32)) (f32.load (i32.const 48))))) ;; 23
  (func $f64x2.splat (type $op) (v128.store (i32.const 0) (f64x2.splat (f64.load (i32.const 32))))) ;; 24
  (func $f64x2.extract_lane_1 (type $op) (f64.store (i32.const 0) (f64x2.extract_lane 1 (v128.load (i32.const 32))))) ;; 25
  (func $f64x2.replace_lane_1 (type $op) (v128.store (i32.const 0) (f64x2.replace_lane 1 (v128.load (i32.const 32)) (f64.load (i32.const 48))))) ;; 26
  (func $i8x16.swizzle (type $op) (v128.store (i32.const 0) (i8x16.swizzle (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 27
  (func $i8x16.shuffle_0_31_1_30_2_29_3_28_15_16_14_17_13_18_12_19 (type $op) (v128.store (i32.const 0) (i8x16.shuffle 0 31 1 30 2 29 3 28 15 16 14 17 13 18 12 19 (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 28
  (func $i8x16.abs (type $op) (v128.store (i32.const 0) (i8x16.abs (v128.load (i32.const 32))))) ;; 29
  (func $i8x16.neg (type $op) (v128.store (i32.const 0) (i8x16.neg (v128.load (i32.const 32))))) ;; 30
  (func $i8x16.add (type $op) (v128.store (i32.const 0) (i8x16.add (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 31
  (func $i8x16.sub (type $op) (v128.store (i32.const 0) (i8x16.sub (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 32
  (func $i8x16.eq (type $op) (v128.store (i32.const 0) (i8x16.eq (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 33
  (func $i8x16.ne (type $op) (v128.store (i32.const 0) (i8x16.ne (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 34
  (func $i8x16.lt_s (type $op) (v128.store (i32.const 0) (i8x16.lt_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 35
  (func $i8x16.lt_u (type $op) (v128.store (i32.const 0) (i8x16.lt_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 36
  (func $i8x16.gt_s (type $op) (v128.store (i32.const 0) (i8x16.gt_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 37
  (func $i8x16.gt_u (type $op) (v128.store (i32.const 0) (i8x16.gt_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 38
  (func $i8x16.le_s (type $op) (v128.store (i32.const 0) (i8x16.le_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 39
  (func $i8x16.le_u (type $op) (v128.store (i32.const 0) (i8x16.le_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 40
  (func $i8x16.ge_s (type $op) (v128.store (i32.const 0) (i8x16.ge_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 41
  (func $i8x16.ge_u (type $op) (v128.store (i32.const 0) (i8x16.ge_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 42
  (func $i8x16.min_s (type $op) (v128.store (i32.const 0) (i8x16.min_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 43
  (func $i8x16.min_u (type $op) (v128.store (i32.const 0) (i8x16.min_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 44
  (func $i8x16.max_s (type $op) (v128.store (i32.const 0) (i8x16.max_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 45
  (func $i8x16.max_u (type $op) (v128.store (i32.const 0) (i8x16.max_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 46
  (func $i8x16.shl (type $op) (v128.store (i32.const 0) (i8x16.shl (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 47
  (func $i8x16.shr_s (type $op) (v128.store (i32.const 0) (i8x16.shr_s (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 48
  (func $i8x16.shr_u (type $op) (v128.store (i32.const 0) (i8x16.shr_u (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 49
  (func $i8x16.all_true (type $op) (i32.store (i32.const 0) (i8x16.all_true (v128.load (i32.const 32))))) ;; 50
  (func $i8x16.bitmask (type $op) (i32.store (i32.const 0) (i8x16.bitmask (v128.load (i32.const 32))))) ;; 51
  (func $i16x8.abs (type $op) (v128.store (i32.const 0) (i16x8.abs (v128.load (i32.const 32))))) ;; 52
  (func $i16x8.neg (type $op) (v128.store (i32.const 0) (i16x8.neg (v128.load (i32.const 32))))) ;; 53
  (func $i16x8.add (type $op) (v128.store (i32.const 0) (i16x8.add (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 54
  (func $i16x8.sub (type $op) (v128.store (i32.const 0) (i16x8.sub (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 55
  (func $i16x8.mul (type $op) (v128.store (i32.const 0) (i16x8.mul (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 56
  (func $i16x8.eq (type $op) (v128.store (i32.const 0) (i16x8.eq (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 57
  (func $i16x8.ne (type $op) (v128.store (i32.const 0) (i16x8.ne (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 58
  (func $i16x8.lt_s (type $op) (v128.store (i32.const 0) (i16x8.lt_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 59
  (func $i16x8.lt_u (type $op) (v128.store (i32.const 0) (i16x8.lt_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 60
  (func $i16x8.gt_s (type $op) (v128.store (i32.const 0) (i16x8.gt_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 61
  (func $i16x8.gt_u (type $op) (v128.store (i32.const 0) (i16x8.gt_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 62
  (func $i16x8.le_s (type $op) (v128.store (i32.const 0) (i16x8.le_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 63
  (func $i16x8.le_u (type $op) (v128.store (i32.const 0) (i16x8.le_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 64
  (func $i16x8.ge_s (type $op) (v128.store (i32.const 0) (i16x8.ge_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 65
  (func $i16x8.ge_u (type $op) (v128.store (i32.const 0) (i16x8.ge_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 66
  (func $i16x8.min_s (type $op) (v128.store (i32.const 0) (i16x8.min_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 67
  (func $i16x8.min_u (type $op) (v128.store (i32.const 0) (i16x8.min_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 68
  (func $i16x8.max_s (type $op) (v128.store (i32.const 0) (i16x8.max_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 69
  (func $i16x8.max_u (type $op) (v128.store (i32.const 0) (i16x8.max_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 70
  (func $i16x8.shl (type $op) (v128.store (i32.const 0) (i16x8.shl (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 71
  (func $i16x8.shr_s (type $op) (v128.store (i32.const 0) (i16x8.shr_s (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 72
  (func $i16x8.shr_u (type $op) (v128.store (i32.const 0) (i16x8.shr_u (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 73
  (func $i16x8.all_true (type $op) (i32.store (i32.const 0) (i16x8.all_true (v128.load (i32.const 32))))) ;; 74
  (func $i16x8.bitmask (type $op) (i32.store (i32.const 0) (i16x8.bitmask (v128.load (i32.const 32))))) ;; 75
  (func $i32x4.abs (type $op) (v128.store (i32.const 0) (i32x4.abs (v128.load (i32.const 32))))) ;; 76
  (func $i32x4.neg (type $op) (v128.store (i32.const 0) (i32x4.neg (v128.load (i32.const 32))))) ;; 77
  (func $i32x4.add (type $op) (v128.store (i32.const 0) (i32x4.add (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 78
  (func $i32x4.sub (type $op) (v128.store (i32.const 0) (i32x4.sub (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 79
  (func $i32x4.mul (type $op) (v128.store (i32.const 0) (i32x4.mul (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 80
  (func $i32x4.eq (type $op) (v128.store (i32.const 0) (i32x4.eq (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 81
  (func $i32x4.ne (type $op) (v128.store (i32.const 0) (i32x4.ne (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 82
  (func $i32x4.lt_s (type $op) (v128.store (i32.const 0) (i32x4.lt_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 83
  (func $i32x4.lt_u (type $op) (v128.store (i32.const 0) (i32x4.lt_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 84
  (func $i32x4.gt_s (type $op) (v128.store (i32.const 0) (i32x4.gt_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 85
  (func $i32x4.gt_u (type $op) (v128.store (i32.const 0) (i32x4.gt_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 86
  (func $i32x4.le_s (type $op) (v128.store (i32.const 0) (i32x4.le_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 87
  (func $i32x4.le_u (type $op) (v128.store (i32.const 0) (i32x4.le_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 88
  (func $i32x4.ge_s (type $op) (v128.store (i32.const 0) (i32x4.ge_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 89
  (func $i32x4.ge_u (type $op) (v128.store (i32.const 0) (i32x4.ge_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 90
  (func $i32x4.min_s (type $op) (v128.store (i32.const 0) (i32x4.min_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 91
  (func $i32x4.min_u (type $op) (v128.store (i32.const 0) (i32x4.min_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 92
  (func $i32x4.max_s (type $op) (v128.store (i32.const 0) (i32x4.max_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 93
  (func $i32x4.max_u (type $op) (v128.store (i32.const 0) (i32x4.max_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 94
  (func $i32x4.shl (type $op) (v128.store (i32.const 0) (i32x4.shl (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 95
  (func $i32x4.shr_s (type $op) (v128.store (i32.const 0) (i32x4.shr_s (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 96
  (func $i32x4.shr_u (type $op) (v128.store (i32.const 0) (i32x4.shr_u (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 97
  (func $i32x4.all_true (type $op) (i32.store (i32.const 0) (i32x4.all_true (v128.load (i32.const 32))))) ;; 98
  (func $i32x4.bitmask (type $op) (i32.store (i32.const 0) (i32x4.bitmask (v128.load (i32.const 32))))) ;; 99
  (func $i64x2.abs (type $op) (v128.store (i32.const 0) (i64x2.abs (v128.load (i32.const 32))))) ;; 100
  (func $i64x2.neg (type $op) (v128.store (i32.const 0) (i64x2.neg (v128.load (i32.const 32))))) ;; 101
  (func $i64x2.add (type $op) (v128.store (i32.const 0) (i64x2.add (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 102
  (func $i64x2.sub (type $op) (v128.store (i32.const 0) (i64x2.sub (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 103
  (func $i64x2.mul (type $op) (v128.store (i32.const 0) (i64x2.mul (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 104
  (func $i64x2.eq (type $op) (v128.store (i32.const 0) (i64x2.eq (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 105
  (func $i64x2.ne (type $op) (v128.store (i32.const 0) (i64x2.ne (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 106
  (func $i64x2.lt_s (type $op) (v128.store (i32.const 0) (i64x2.lt_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 107
  (func $i64x2.gt_s (type $op) (v128.store (i32.const 0) (i64x2.gt_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 108
  (func $i64x2.le_s (type $op) (v128.store (i32.const 0) (i64x2.le_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 109
  (func $i64x2.ge_s (type $op) (v128.store (i32.const 0) (i64x2.ge_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 110
  (func $i64x2.shl (type $op) (v128.store (i32.const 0) (i64x2.shl (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 111
  (func $i64x2.shr_s (type $op) (v128.store (i32.const 0) (i64x2.shr_s (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 112
  (func $i64x2.shr_u (type $op) (v128.store (i32.const 0) (i64x2.shr_u (v128.load (i32.const 32)) (i32.load (i32.const 48))))) ;; 113
  (func $i64x2.all_true (type $op) (i32.store (i32.const 0) (i64x2.all_true (v128.load (i32.const 32))))) ;; 114
  (func $i64x2.bitmask (type $op) (i32.store (i32.const 0) (i64x2.bitmask (v128.load (i32.const 32))))) ;; 115
  (func $i8x16.add_sat_s (type $op) (v128.store (i32.const 0) (i8x16.add_sat_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 116
  (func $i8x16.add_sat_u (type $op) (v128.store (i32.const 0) (i8x16.add_sat_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 117
  (func $i8x16.sub_sat_s (type $op) (v128.store (i32.const 0) (i8x16.sub_sat_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 118
  (func $i8x16.sub_sat_u (type $op) (v128.store (i32.const 0) (i8x16.sub_sat_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 119
  (func $i8x16.avgr_u (type $op) (v128.store (i32.const 0) (i8x16.avgr_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 120
  (func $i16x8.add_sat_s (type $op) (v128.store (i32.const 0) (i16x8.add_sat_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 121
  (func $i16x8.add_sat_u (type $op) (v128.store (i32.const 0) (i16x8.add_sat_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 122
  (func $i16x8.sub_sat_s (type $op) (v128.store (i32.const 0) (i16x8.sub_sat_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 123
  (func $i16x8.sub_sat_u (type $op) (v128.store (i32.const 0) (i16x8.sub_sat_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 124
  (func $i16x8.avgr_u (type $op) (v128.store (i32.const 0) (i16x8.avgr_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 125
  (func $i8x16.popcnt (type $op) (v128.store (i32.const 0) (i8x16.popcnt (v128.load (i32.const 32))))) ;; 126
  (func $i16x8.q15mulr_sat_s (type $op) (v128.store (i32.const 0) (i16x8.q15mulr_sat_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 127
  (func $i32x4.dot_i16x8_s (type $op) (v128.store (i32.const 0) (i32x4.dot_i16x8_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 128
  (func $i8x16.narrow_i16x8_s (type $op) (v128.store (i32.const 0) (i8x16.narrow_i16x8_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 129
  (func $i8x16.narrow_i16x8_u (type $op) (v128.store (i32.const 0) (i8x16.narrow_i16x8_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 130
  (func $i16x8.narrow_i32x4_s (type $op) (v128.store (i32.const 0) (i16x8.narrow_i32x4_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 131
  (func $i16x8.narrow_i32x4_u (type $op) (v128.store (i32.const 0) (i16x8.narrow_i32x4_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 132
  (func $i16x8.extend_low_i8x16_s (type $op) (v128.store (i32.const 0) (i16x8.extend_low_i8x16_s (v128.load (i32.const 32))))) ;; 133
  (func $i16x8.extmul_low_i8x16_s (type $op) (v128.store (i32.const 0) (i16x8.extmul_low_i8x16_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 134
  (func $i16x8.extend_high_i8x16_s (type $op) (v128.store (i32.const 0) (i16x8.extend_high_i8x16_s (v128.load (i32.const 32))))) ;; 135
  (func $i16x8.extmul_high_i8x16_s (type $op) (v128.store (i32.const 0) (i16x8.extmul_high_i8x16_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 136
  (func $i16x8.extadd_pairwise_i8x16_s (type $op) (v128.store (i32.const 0) (i16x8.extadd_pairwise_i8x16_s (v128.load (i32.const 32))))) ;; 137
  (func $i16x8.extend_low_i8x16_u (type $op) (v128.store (i32.const 0) (i16x8.extend_low_i8x16_u (v128.load (i32.const 32))))) ;; 138
  (func $i16x8.extmul_low_i8x16_u (type $op) (v128.store (i32.const 0) (i16x8.extmul_low_i8x16_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 139
  (func $i16x8.extend_high_i8x16_u (type $op) (v128.store (i32.const 0) (i16x8.extend_high_i8x16_u (v128.load (i32.const 32))))) ;; 140
  (func $i16x8.extmul_high_i8x16_u (type $op) (v128.store (i32.const 0) (i16x8.extmul_high_i8x16_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 141
  (func $i16x8.extadd_pairwise_i8x16_u (type $op) (v128.store (i32.const 0) (i16x8.extadd_pairwise_i8x16_u (v128.load (i32.const 32))))) ;; 142
  (func $i32x4.extend_low_i16x8_s (type $op) (v128.store (i32.const 0) (i32x4.extend_low_i16x8_s (v128.load (i32.const 32))))) ;; 143
  (func $i32x4.extmul_low_i16x8_s (type $op) (v128.store (i32.const 0) (i32x4.extmul_low_i16x8_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 144
  (func $i32x4.extend_high_i16x8_s (type $op) (v128.store (i32.const 0) (i32x4.extend_high_i16x8_s (v128.load (i32.const 32))))) ;; 145
  (func $i32x4.extmul_high_i16x8_s (type $op) (v128.store (i32.const 0) (i32x4.extmul_high_i16x8_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 146
  (func $i32x4.extadd_pairwise_i16x8_s (type $op) (v128.store (i32.const 0) (i32x4.extadd_pairwise_i16x8_s (v128.load (i32.const 32))))) ;; 147
  (func $i32x4.extend_low_i16x8_u (type $op) (v128.store (i32.const 0) (i32x4.extend_low_i16x8_u (v128.load (i32.const 32))))) ;; 148
  (func $i32x4.extmul_low_i16x8_u (type $op) (v128.store (i32.const 0) (i32x4.extmul_low_i16x8_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 149
  (func $i32x4.extend_high_i16x8_u (type $op) (v128.store (i32.const 0) (i32x4.extend_high_i16x8_u (v128.load (i32.const 32))))) ;; 150
  (func $i32x4.extmul_high_i16x8_u (type $op) (v128.store (i32.const 0) (i32x4.extmul_high_i16x8_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 151
  (func $i32x4.extadd_pairwise_i16x8_u (type $op) (v128.store (i32.const 0) (i32x4.extadd_pairwise_i16x8_u (v128.load (i32.const 32))))) ;; 152
  (func $i64x2.extend_low_i32x4_s (type $op) (v128.store (i32.const 0) (i64x2.extend_low_i32x4_s (v128.load (i32.const 32))))) ;; 153
  (func $i64x2.extmul_low_i32x4_s (type $op) (v128.store (i32.const 0) (i64x2.extmul_low_i32x4_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 154
  (func $i64x2.extend_high_i32x4_s (type $op) (v128.store (i32.const 0) (i64x2.extend_high_i32x4_s (v128.load (i32.const 32))))) ;; 155
  (func $i64x2.extmul_high_i32x4_s (type $op) (v128.store (i32.const 0) (i64x2.extmul_high_i32x4_s (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 156
  (func $i64x2.extend_low_i32x4_u (type $op) (v128.store (i32.const 0) (i64x2.extend_low_i32x4_u (v128.load (i32.const 32))))) ;; 157
  (func $i64x2.extmul_low_i32x4_u (type $op) (v128.store (i32.const 0) (i64x2.extmul_low_i32x4_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 158
  (func $i64x2.extend_high_i32x4_u (type $op) (v128.store (i32.const 0) (i64x2.extend_high_i32x4_u (v128.load (i32.const 32))))) ;; 159
  (func $i64x2.extmul_high_i32x4_u (type $op) (v128.store (i32.const 0) (i64x2.extmul_high_i32x4_u (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 160
  (func $f32x4.abs (type $op) (v128.store (i32.const 0) (f32x4.abs (v128.load (i32.const 32))))) ;; 161
  (func $f32x4.neg (type $op) (v128.store (i32.const 0) (f32x4.neg (v128.load (i32.const 32))))) ;; 162
  (func $f32x4.sqrt (type $op) (v128.store (i32.const 0) (f32x4.sqrt (v128.load (i32.const 32))))) ;; 163
  (func $f32x4.ceil (type $op) (v128.store (i32.const 0) (f32x4.ceil (v128.load (i32.const 32))))) ;; 164
  (func $f32x4.floor (type $op) (v128.store (i32.const 0) (f32x4.floor (v128.load (i32.const 32))))) ;; 165
  (func $f32x4.trunc (type $op) (v128.store (i32.const 0) (f32x4.trunc (v128.load (i32.const 32))))) ;; 166
  (func $f32x4.nearest (type $op) (v128.store (i32.const 0) (f32x4.nearest (v128.load (i32.const 32))))) ;; 167
  (func $f32x4.add (type $op) (v128.store (i32.const 0) (f32x4.add (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 168
  (func $f32x4.sub (type $op) (v128.store (i32.const 0) (f32x4.sub (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 169
  (func $f32x4.mul (type $op) (v128.store (i32.const 0) (f32x4.mul (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 170
  (func $f32x4.div (type $op) (v128.store (i32.const 0) (f32x4.div (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 171
  (func $f32x4.min (type $op) (v128.store (i32.const 0) (f32x4.min (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 172
  (func $f32x4.max (type $op) (v128.store (i32.const 0) (f32x4.max (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 173
  (func $f32x4.pmin (type $op) (v128.store (i32.const 0) (f32x4.pmin (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 174
  (func $f32x4.pmax (type $op) (v128.store (i32.const 0) (f32x4.pmax (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 175
  (func $f32x4.eq (type $op) (v128.store (i32.const 0) (f32x4.eq (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 176
  (func $f32x4.ne (type $op) (v128.store (i32.const 0) (f32x4.ne (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 177
  (func $f32x4.lt (type $op) (v128.store (i32.const 0) (f32x4.lt (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 178
  (func $f32x4.gt (type $op) (v128.store (i32.const 0) (f32x4.gt (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 179
  (func $f32x4.le (type $op) (v128.store (i32.const 0) (f32x4.le (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 180
  (func $f32x4.ge (type $op) (v128.store (i32.const 0) (f32x4.ge (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 181
  (func $f64x2.abs (type $op) (v128.store (i32.const 0) (f64x2.abs (v128.load (i32.const 32))))) ;; 182
  (func $f64x2.neg (type $op) (v128.store (i32.const 0) (f64x2.neg (v128.load (i32.const 32))))) ;; 183
  (func $f64x2.sqrt (type $op) (v128.store (i32.const 0) (f64x2.sqrt (v128.load (i32.const 32))))) ;; 184
  (func $f64x2.ceil (type $op) (v128.store (i32.const 0) (f64x2.ceil (v128.load (i32.const 32))))) ;; 185
  (func $f64x2.floor (type $op) (v128.store (i32.const 0) (f64x2.floor (v128.load (i32.const 32))))) ;; 186
  (func $f64x2.trunc (type $op) (v128.store (i32.const 0) (f64x2.trunc (v128.load (i32.const 32))))) ;; 187
  (func $f64x2.nearest (type $op) (v128.store (i32.const 0) (f64x2.nearest (v128.load (i32.const 32))))) ;; 188
  (func $f64x2.add (type $op) (v128.store (i32.const 0) (f64x2.add (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 189
  (func $f64x2.sub (type $op) (v128.store (i32.const 0) (f64x2.sub (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 190
  (func $f64x2.mul (type $op) (v128.store (i32.const 0) (f64x2.mul (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 191
  (func $f64x2.div (type $op) (v128.store (i32.const 0) (f64x2.div (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 192
  (func $f64x2.min (type $op) (v128.store (i32.const 0) (f64x2.min (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 193
  (func $f64x2.max (type $op) (v128.store (i32.const 0) (f64x2.max (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 194
  (func $f64x2.pmin (type $op) (v128.store (i32.const 0) (f64x2.pmin (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 195
  (func $f64x2.pmax (type $op) (v128.store (i32.const 0) (f64x2.pmax (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 196
  (func $f64x2.eq (type $op) (v128.store (i32.const 0) (f64x2.eq (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 197
  (func $f64x2.ne (type $op) (v128.store (i32.const 0) (f64x2.ne (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 198
  (func $f64x2.lt (type $op) (v128.store (i32.const 0) (f64x2.lt (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 199
  (func $f64x2.gt (type $op) (v128.store (i32.const 0) (f64x2.gt (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 200
  (func $f64x2.le (type $op) (v128.store (i32.const 0) (f64x2.le (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 201
  (func $f64x2.ge (type $op) (v128.store (i32.const 0) (f64x2.ge (v128.load (i32.const 32)) (v128.load (i32.const 48))))) ;; 202
  (func $f32x4.demote_f64x2_zero (type $op) (v128.store (i32.const 0) (f32x4.demote_f64x2_zero (v128.load (i32.const 32))))) ;; 203
  (func $f64x2.promote_low_f32x4 (type $op) (v128.store (i32.const 0) (f64x2.promote_low_f32x4 (v128.load (i32.const 32))))) ;; 204
  (func $i32x4.trunc_sat_f32x4_s (type $op) (v128.store (i32.const 0) (i32x4.trunc_sat_f32x4_s (v128.load (i32.const 32))))) ;; 205
  (func $i32x4.trunc_sat_f32x4_u (type $op) (v128.store (i32.const 0) (i32x4.trunc_sat_f32x4_u (v128.load (i32.const 32))))) ;; 206
  (func $i32x4.trunc_sat_f64x2_s_zero (type $op) (v128.store (i32.const 0) (i32x4.trunc_sat_f64x2_s_zero (v128.load (i32.const 32))))) ;; 207
  (func $i32x4.trunc_sat_f64x2_u_zero (type $op) (v128.store (i32.const 0) (i32x4.trunc_sat_f64x2_u_zero (v128.load (i32.const 32))))) ;; 208
  (func $f32x4.convert_i32x4_s (type $op) (v128.store (i32.const 0) (f32x4.convert_i32x4_s (v128.load (i32.const 32))))) ;; 209
  (func $f32x4.convert_i32x4_u (type $op) (v128.store (i32.const 0) (f32x4.convert_i32x4_u (v128.load (i32.const 32))))) ;; 210
  (func $f64x2.convert_low_i32x4_s (type $op) (v128.store (i32.const 0) (f64x2.convert_low_i32x4_s (v128.load (i32.const 32))))) ;; 211
  (func $f64x2.convert_low_i32x4_u (type $op) (v128.store (i32.const 0) (f64x2.convert_low_i32x4_u (v128.load (i32.const 32))))) ;; 212
  (func $v128.load8x8_s (type $op) (v128.store (i32.const 0) (v128.load8x8_s offset=3 (i32.const 32)))) ;; 213
  (func $v128.load8x8_u (type $op) (v128.store (i32.const 0) (v128.load8x8_u offset=3 (i32.const 32)))) ;; 214
  (func $v128.load16x4_s (type $op) (v128.store (i32.const 0) (v128.load16x4_s offset=3 (i32.const 32)))) ;; 215
  (func $v128.load16x4_u (type $op) (v128.store (i32.const 0) (v128.load16x4_u offset=3 (i32.const 32)))) ;; 216
  (func $v128.load32x2_s (type $op) (v128.store (i32.const 0) (v128.load32x2_s offset=3 (i32.const 32)))) ;; 217
  (func $v128.load32x2_u (type $op) (v128.store (i32.const 0) (v128.load32x2_u offset=3 (i32.const 32)))) ;; 218
  (func $v128.load8_splat (type $op) (v128.store (i32.const 0) (v128.load8_splat offset=3 (i32.const 32)))) ;; 219
  (func $v128.load16_splat (type $op) (v128.store (i32.const 0) (v128.load16_splat offset=3 (i32.const 32)))) ;; 220
  (func $v128.load32_splat (type $op) (v128.store (i32.const 0) (v128.load32_splat offset=3 (i32.const 32)))) ;; 221
  (func $v128.load64_splat (type $op) (v128.store (i32.const 0) (v128.load64_splat offset=3 (i32.const 32)))) ;; 222
  (func $v128.load32_zero (type $op) (v128.store (i32.const 0) (v128.load32_zero offset=3 (i32.const 32)))) ;; 223
  (func $v128.load64_zero (type $op) (v128.store (i32.const 0) (v128.load64_zero offset=3 (i32.const 32)))) ;; 224
  (func $v128.load8_lane (type $op) (v128.store (i32.const 0) (v128.load8_lane offset=1 15 (i32.const 48) (v128.load (i32.const 32))))) ;; 225
  (func $v128.store8_lane (type $op) (v128.store8_lane offset=1 15 (i32.const 0) (v128.load (i32.const 32)))) ;; 226
  (func $v128.load16_lane (type $op) (v128.store (i32.const 0) (v128.load16_lane offset=1 7 (i32.const 48) (v128.load (i32.const 32))))) ;; 227
  (func $v128.store16_lane (type $op) (v128.store16_lane offset=1 7 (i32.const 0) (v128.load (i32.const 32)))) ;; 228
  (func $v128.load32_lane (type $op) (v128.store (i32.const 0) (v128.load32_lane offset=1 3 (i32.const 48) (v128.load (i32.const 32))))) ;; 229
  (func $v128.store32_lane (type $op) (v128.store32_lane offset=1 3 (i32.const 0) (v128.load (i32.const 32)))) ;; 230
  (func $v128.load64_lane (type $op) (v128.store (i32.const 0) (v128.load64_lane offset=1 1 (i32.const 48) (v128.load (i32.const 32))))) ;; 231
  (func $v128.store64_lane (type $op) (v128.store64_lane offset=1 1 (i32.const 0) (v128.load (i32.const 32)))) ;; 232

  (func (export "kvrt_abi_1"))
  (func (export "kvrt_arena") (param i32) (result i64) (i64.const 0))
  (func (export "kvrt_init") (param i32 i32) (result i64) (i64.const 0))
  (func (export "kvrt_handle") (param i32 i32 i32) (result i64)
    (call_indirect (type $op) (local.get 0))
    (i64.const 0)))
