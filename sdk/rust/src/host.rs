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

/// Has blocks brought from a source into the host's block store, ahead of need and in the
/// background (capability kvrt_fetch). It is no hint of the request.
pub fn prefetch(source: &str, hashes: &[u64]) -> Answer {
    // SAFETY: both runs are valid for the length of the call.
    verdict(unsafe { host::fetch::prefetch(source.as_ptr(), source.len() as u32, hashes.as_ptr(), hashes.len() as u32, 0) })
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

fn count(n: i64) -> Result<usize, u32> {
    if n < 0 {
        Err(n.unsigned_abs() as u32)
    } else {
        Ok(n as usize)
    }
}

fn accepted(n: i64) -> Answer {
    count(n).map_or_else(Answer::Refused, |_| Answer::Accept)
}

/// How many blocks this call's request has, as its engine described them (capability
/// kvrt_store). Their hashes are written to `room`, if there is room for all. The error is
/// a `REASON_` constant.
pub fn request_hashes(room: &mut [u64]) -> Result<usize, u32> {
    // SAFETY: the run is valid for the length of the call.
    count(unsafe { host::store::request(room.as_mut_ptr() as *mut u8, core::mem::size_of_val(room) as u32) }).map(|bytes| bytes / 8)
}

/// Evicts blocks of the request's namespace from the host's block store, when the action is
/// accepted (capability kvrt_store). An empty list stands for the blocks of the request.
pub fn evict(hashes: &[u64]) -> Answer {
    // SAFETY: the run is valid for the length of the call.
    accepted(unsafe { host::store::evict(hashes.as_ptr(), hashes.len() as u32) })
}

/// Evicts as [`evict`] does, when the request of the action has ended.
pub fn evict_after(hashes: &[u64]) -> Answer {
    // SAFETY: the run is valid for the length of the call.
    accepted(unsafe { host::store::evict_after(hashes.as_ptr(), hashes.len() as u32) })
}

/// Has the host's block store keep blocks, when the action is accepted (capability
/// kvrt_store): each claim names a run of `hashes` or, when that is empty, of the request's
/// tokens. No scope: the request is whose claims these are.
pub fn retain(hashes: &[u64], claims: &[crate::abi::StoreClaim], scope: Option<&str>) -> Answer {
    let (at, len) = scope.map_or((core::ptr::null(), 0), |s| (s.as_ptr(), s.len()));
    let (claims, size) = (claims.as_ptr() as *const u8, core::mem::size_of_val(claims));
    // SAFETY: the runs are valid for the length of the call.
    accepted(unsafe { host::store::retain(hashes.as_ptr(), hashes.len() as u32, claims, size as u32, at, len as u32) })
}

/// Brings blocks from the host's block store to the device (capability kvrt_gpu). An empty
/// list stands for the blocks of the request.
pub fn device_prefetch(hashes: &[u64]) -> Answer {
    // SAFETY: the run is valid for the length of the call.
    accepted(unsafe { host::gpu::prefetch(hashes.as_ptr(), hashes.len() as u32) })
}

/// Writes for each block whether it is on the device, as a `RESIDENCY_` constant, if there
/// is room for all, and returns how many blocks that are (capability kvrt_gpu). An empty
/// list stands for the blocks of the request. The error is a `REASON_` constant.
pub fn device_residency(hashes: &[u64], room: &mut [u8]) -> Result<usize, u32> {
    // SAFETY: both runs are valid for the length of the call.
    count(unsafe { host::gpu::residency(hashes.as_ptr(), hashes.len() as u32, room.as_mut_ptr(), room.len() as u32) })
}

/// Describes the device's memory for blocks (capability kvrt_gpu). The error is a `REASON_`
/// constant.
pub fn device_info() -> Result<crate::abi::DeviceInfo, u32> {
    let mut info = crate::abi::DeviceInfo { device: 0, zero: 0, block_bytes: 0, blocks: 0, used: 0 };
    // SAFETY: the record is valid for the length of the call, and any bytes are one.
    count(unsafe { host::gpu::info(&mut info as *mut _ as *mut u8, crate::abi::SIZE_DEVICE_INFO as u32) }).map(|_| info)
}
