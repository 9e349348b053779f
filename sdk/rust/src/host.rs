//! The host functions as an author calls them. What a guest does not use is not
//! imported, and needs no grant.

use crate::answer::{Answer, Text};
use core::fmt;

#[cfg(target_arch = "wasm32")]
use crate::abi as host;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::host;

/// Writes a line to the guest's log (capability kvrt_log). `level` is one of the
/// `LEVEL_` constants. The host repeats an equal warning once only.
pub fn log(level: u32, line: fmt::Arguments) {
    let text = Text::new(line);
    let b = text.as_bytes();
    // SAFETY: the run is valid for the length of the call.
    unsafe { host::log::write(level, b.as_ptr(), b.len() as u32) }
}

/// Writes a warning to the guest's log: `warn!("version {} taken as 1.0", version)`.
#[macro_export]
macro_rules! warn {
    ($($line:tt)+) => {
        $crate::log($crate::abi::LEVEL_WARN, ::core::format_args!($($line)+))
    };
}

/// Whether a line of this level would be kept.
pub fn logs(level: u32) -> bool {
    // SAFETY: no memory is involved.
    unsafe { host::log::enabled(level) != 0 }
}

/// Wall clock in ns since 1970, the same throughout a call (capability kvrt_clock).
pub fn now() -> i64 {
    // SAFETY: no memory is involved.
    unsafe { host::clock::now() }
}

/// Monotonic clock in ns, the same throughout a call (capability kvrt_clock).
pub fn monotonic() -> i64 {
    // SAFETY: no memory is involved.
    unsafe { host::clock::monotonic() }
}

fn verdict(code: i32) -> Answer {
    if code == 0 {
        Answer::Accept
    } else {
        Answer::Refused(code.unsigned_abs())
    }
}

/// Hands a hint of this call's request to the host's fetch hint store (capability
/// kvrt_fetch) and answers what the store says. No source means local storage.
/// `flags`: `FETCH_FLAG_` bits.
pub fn fetch(source: Option<&str>, hashes: &[u64], flags: u32) -> Answer {
    let (at, len) = source.map_or((core::ptr::null(), 0), |s| (s.as_ptr(), s.len()));
    // SAFETY: both runs are valid for the length of the call.
    verdict(unsafe { host::fetch::submit(at, len as u32, hashes.as_ptr(), hashes.len() as u32, flags) })
}

/// Drops the hint of this call's request. May be repeated.
pub fn fetch_discard() -> Answer {
    // SAFETY: no memory is involved.
    verdict(unsafe { host::fetch::discard() })
}

/// Ends this call's request. May be repeated.
pub fn fetch_finish(aborted: bool) -> Answer {
    // SAFETY: no memory is involved.
    verdict(unsafe { host::fetch::finish(aborted as u32) })
}
