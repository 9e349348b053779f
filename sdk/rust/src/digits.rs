//! Integers as decimal text, eight digits at a time: a division for each would take most of
//! the time.

const E8: u64 = 100_000_000;

/// The digits of x in 24 bytes, and how many zeros stand in front.
pub(crate) fn decimal(x: u64) -> ([u8; 24], usize) {
    let (top, rest) = if x < E8 * E8 { (0, x) } else { (x / (E8 * E8), x % (E8 * E8)) };
    let (middle, low) = if rest < E8 { (0, rest) } else { (rest / E8, rest % E8) };
    let parts = [eight(top), eight(middle), eight(low)];
    let mut text = [0; 24];
    for (to, part) in text.chunks_exact_mut(8).zip(parts) {
        to.copy_from_slice(&(part | 0x3030_3030_3030_3030).to_le_bytes());
    }
    // A part's first digit is its lowest byte.
    let zeros = match parts {
        [0, 0, part] => 16 + (part.trailing_zeros() / 8).min(7),
        [0, part, _] => 8 + part.trailing_zeros() / 8,
        [part, ..] => part.trailing_zeros() / 8,
    };
    (text, zeros as usize)
}

/// The eight digits of x below 10^8, the first in the lowest byte: halves of four digits,
/// then of two, then of one, all at once. A quotient is a product with the rounded-up
/// reciprocal, which is exact in these ranges.
fn eight(x: u64) -> u64 {
    let high = x * 109_951_163 >> 40;
    let four = (x << 32) - high * ((10_000 << 32) - 1);
    let hundreds = (four * 10_486 >> 20) & 0x7f_0000_007f;
    let two = hundreds | (four - hundreds * 100) << 16;
    let tens = (two * 103 >> 10) & 0x000f_000f_000f_000f;
    tens | (two - tens * 10) << 8
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn digits_of_every_length() {
        let mut x = 0x9e37_79b9_7f4a_7c15u64;
        let mut check = |x: u64| {
            let (text, zeros) = decimal(x);
            assert_eq!(&text[zeros..], x.to_string().as_bytes());
        };
        for power in (0..20).map(|n| 10u64.pow(n)) {
            check(power - 1);
            check(power);
            check(power + 1);
        }
        check(u64::MAX);
        for shift in (0..64).cycle().take(20_000) {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            check(x >> shift);
        }
    }
}
