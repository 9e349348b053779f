//! The schema {execute_at, include_current_request, block_hashes, priority,
//! ttl_seconds}, which names blocks instead of token ranges.

use crate::MAX_TEXTS;
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
        Err(Fault::Many) => {
            reject!(REASON_LIMIT_EXCEEDED, "at most {} block_hashes as text; more must all be integers", MAX_TEXTS)
        }
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
    Many,
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
        if hashes.len() > MAX_TEXTS {
            return Err(Fault::Many);
        }
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
    canonical && digits(b) && (b.len() < MAX.len() || at_most_max(b))
}

const MAX: &[u8; 20] = b"18446744073709551615";

fn digits(b: &[u8]) -> bool {
    let word = |w: &[u8]| w.try_into().map_or(false, |w| eight_digits(u64::from_le_bytes(w)));
    if b.len() < 8 {
        return b.iter().all(u8::is_ascii_digit);
    }
    // The last word may overlap the one before.
    b.chunks_exact(8).all(word) && b.get(b.len() - 8..).map_or(false, word)
}

/// Compares the text of 20 digits with that of 2^64-1. Nearly always the first two say
/// it.
fn at_most_max(b: &[u8]) -> bool {
    match b {
        [b'1', b'0'..=b'7', ..] => true,
        [b'1', b'8', ..] => b.iter().zip(MAX).find(|(x, max)| x != max).map_or(true, |(x, max)| x < max),
        _ => false,
    }
}

/// Whether each byte is in '0'..='9': the upper half is 3, and stays so when 6 is added.
fn eight_digits(w: u64) -> bool {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const THREES: u64 = 0x3030_3030_3030_3030;
    w & HIGH == THREES && w.wrapping_add(0x0606_0606_0606_0606) & HIGH == THREES
}
