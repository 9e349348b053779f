//! The schema {execute_at, include_current_request, block_hashes, priority,
//! ttl_seconds}, which names blocks instead of token ranges.

use core::cmp::Ordering;
use kvrt::{abi::*, reject, Answer, Value};

/// The keys that make a payload one of this schema.
pub const KEYS: [&str; 7] = [
    "execute_at",
    "include_current_request",
    "block_hashes",
    "priority",
    "ttl_seconds",
    "current_request_block_start",
    "current_request_block_count",
];

pub fn judge(payload: Value) -> Answer {
    match check(payload) {
        Ok(()) => Answer::Accept,
        Err(Fault::Text(text)) => reject!(REASON_INVALID_PAYLOAD, "{}", text),
        Err(Fault::Hash(i)) => reject!(
            REASON_INVALID_PAYLOAD,
            "block_hashes[{}] must be an integer in [0, 2^64), or its decimal text without leading zeros",
            i
        ),
    }
}

enum Fault {
    Text(&'static str),
    Hash(usize),
}

fn check(p: Value) -> Result<(), Fault> {
    let fail = |text| Err(Fault::Text(text));
    if p.get("execute_at").str() != Some("request_completion") {
        return fail("execute_at must be 'request_completion'");
    }
    let include = match p.get("include_current_request").bool() {
        Some(b) => b,
        None => return fail("include_current_request must be a boolean"),
    };
    let hashes = p.get("block_hashes");
    if !hashes.is_array() {
        return fail("block_hashes must be a list");
    }
    if hashes.hashes().is_none() {
        if let Some(i) = hashes.elems().position(|h| h.u64().is_none() && !h.str().map_or(false, is_hash)) {
            return Err(Fault::Hash(i));
        }
    }
    if p.get("priority").u64().is_none() {
        return fail("priority must be an integer in [0, 2^64)");
    }
    let ttl = p.get("ttl_seconds");
    let seconds = ttl.u64().map(|s| s as f64).or_else(|| ttl.f64());
    if !seconds.map_or(false, |s| s > 0.0 && s < f64::INFINITY) {
        return fail("ttl_seconds must be a finite number greater than 0");
    }
    let (start, count) = (p.get("current_request_block_start"), p.get("current_request_block_count"));
    if start.is_absent() && count.is_absent() {
        if hashes.is_empty() && !include {
            return fail("block_hashes must not be empty unless include_current_request is true");
        }
        return Ok(());
    }
    if start.is_absent() || count.is_absent() {
        return fail("current_request_block_start and current_request_block_count go together");
    }
    let first = match start.u64() {
        Some(s) => s,
        None => return fail("current_request_block_start must be an integer in [0, 2^64)"),
    };
    match count.u64() {
        Some(n) if n > 0 && first.checked_add(n).is_some() => {}
        Some(n) if n > 0 => return fail("the blocks from current_request_block_start on must end below 2^64"),
        _ => return fail("current_request_block_count must be a positive integer"),
    }
    if !hashes.is_empty() || include {
        return fail("current_request_block_start needs empty block_hashes and include_current_request false");
    }
    Ok(())
}

/// Whether the text is a hash as this schema spells it: canonical decimal. A payload
/// may have thousands, so it goes eight digits at a time.
fn is_hash(text: &str) -> bool {
    let b = text.as_bytes();
    let canonical = match b {
        [] => false,
        [b'0', rest @ ..] => rest.is_empty(),
        _ => b.len() <= MAX.len(),
    };
    let words = b.chunks_exact(8);
    let rest = words.remainder();
    canonical
        && words.map(word).all(eight_digits)
        && rest.iter().all(u8::is_ascii_digit)
        && (b.len() < MAX.len() || at_most_max(b))
}

const MAX: &[u8; 20] = b"18446744073709551615";

/// Compares the text of 20 digits with that of 2^64-1.
fn at_most_max(b: &[u8]) -> bool {
    for (x, max) in b.chunks(8).zip(MAX.chunks(8)) {
        match word(x).cmp(&word(max)) {
            Ordering::Less => return true,
            Ordering::Greater => return false,
            Ordering::Equal => {}
        }
    }
    true
}

/// Up to eight bytes as a number, the first one the most significant.
fn word(b: &[u8]) -> u64 {
    match b.try_into() {
        Ok(eight) => u64::from_be_bytes(eight),
        Err(_) => b.iter().fold(0, |w, x| w << 8 | *x as u64),
    }
}

/// Whether each byte is in '0'..='9': the upper half is 3, and stays so when 6 is added.
fn eight_digits(w: u64) -> bool {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const THREES: u64 = 0x3030_3030_3030_3030;
    w & HIGH == THREES && w.wrapping_add(0x0606_0606_0606_0606) & HIGH == THREES
}
