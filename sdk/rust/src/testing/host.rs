//! The host functions of a test: they record what they were asked, per thread.

use super::fleet::{give, Fleet};
use crate::abi::{StoreClaim, SIZE_STORE_CLAIM};
use std::cell::RefCell;

/// What the guest asked of the host.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Log lines, as "warn: text".
    pub log: Vec<String>,
    /// Hints handed to kvrt_fetch.submit: source, hashes, flags.
    pub submits: Vec<(Option<String>, Vec<u64>, u32)>,
    /// What kvrt_fetch.submit answers: 0, or a negated reason.
    pub submit_answer: i32,
    /// Blocks to bring, of kvrt_fetch.prefetch: source, hashes.
    pub prefetches: Vec<(String, Vec<u64>)>,
    /// What kvrt_fetch.prefetch answers: 0, or a negated reason.
    pub prefetch_answer: i32,
    /// The blocks of the request; none: nobody described it.
    pub request: Option<Vec<u64>>,
    /// Blocks to evict, of kvrt_store: the function, and the hashes.
    pub evicts: Vec<(&'static str, Vec<u64>)>,
    /// Claims on blocks, of kvrt_store.retain: the hashes, the claims, and the scope.
    pub retains: Vec<(Vec<u64>, Vec<StoreClaim>, Option<String>)>,
    /// What kvrt_store answers: 0, or a negated reason.
    pub store_answer: i64,
    /// Blocks to bring to the device, of kvrt_gpu.prefetch.
    pub device: Vec<Vec<u64>>,
    /// Blocks that are on the device.
    pub on_device: Vec<u64>,
    /// What kvrt_gpu answers: 0, or a negated reason.
    pub device_answer: i64,
    /// What the clocks say.
    pub now: i64,
    /// What is known of sessions and workers.
    pub fleet: Fleet,
}

thread_local!(static RECORD: RefCell<Record> = RefCell::default());

/// Starts a new record and returns the old one.
pub fn reset(new: Record) -> Record {
    RECORD.with(|r| r.replace(new))
}

pub(crate) mod log {
    use super::RECORD;

    pub unsafe fn enabled(_level: u32) -> i32 {
        1
    }

    pub unsafe fn write(level: u32, msg: *const u8, len: u32) {
        let text = String::from_utf8_lossy(std::slice::from_raw_parts(msg, len as usize)).into_owned();
        let name = ["debug", "info", "warn", "error"][level as usize];
        RECORD.with(|r| r.borrow_mut().log.push(format!("{}: {}", name, text)));
    }
}

pub(crate) mod clock {
    use super::RECORD;

    pub unsafe fn now() -> i64 {
        RECORD.with(|r| r.borrow().now)
    }

    pub unsafe fn monotonic() -> i64 {
        now()
    }
}

pub(crate) mod fetch {
    use super::RECORD;

    pub unsafe fn submit(source: *const u8, source_len: u32, hashes: *const u64, count: u32, flags: u32) -> i32 {
        let source = (!source.is_null()).then(|| {
            let b = std::slice::from_raw_parts(source, source_len as usize);
            String::from_utf8_lossy(b).into_owned()
        });
        let hashes = std::slice::from_raw_parts(hashes, count as usize).to_vec();
        RECORD.with(|r| {
            let mut r = r.borrow_mut();
            if r.submit_answer == 0 {
                r.submits.push((source, hashes, flags));
            }
            r.submit_answer
        })
    }

    pub unsafe fn prefetch(source: *const u8, source_len: u32, hashes: *const u64, count: u32, _flags: u32) -> i32 {
        let order = (super::text(source, source_len), std::slice::from_raw_parts(hashes, count as usize).to_vec());
        RECORD.with(|r| {
            let mut r = r.borrow_mut();
            if r.prefetch_answer == 0 {
                r.prefetches.push(order);
            }
            r.prefetch_answer
        })
    }

    pub unsafe fn discard() -> i32 {
        0
    }

    pub unsafe fn finish(_aborted: u32) -> i32 {
        0
    }
}

/// Blocks that a guest names: its own list, or those of the request.
unsafe fn blocks(r: &Record, hashes: *const u64, count: u32) -> Result<Vec<u64>, i64> {
    if count > 0 {
        return Ok(std::slice::from_raw_parts(hashes, count as usize).to_vec());
    }
    r.request.clone().ok_or(-i64::from(crate::abi::REASON_NOT_FOUND))
}

unsafe fn claims(at: *const u8, len: u32) -> Vec<StoreClaim> {
    (0..len as usize / SIZE_STORE_CLAIM).map(|i| (at as *const StoreClaim).add(i).read_unaligned()).collect()
}

pub(crate) mod store {
    use super::{blocks, claims, RECORD};

    pub unsafe fn request(buf: *mut u8, cap: u32) -> i64 {
        RECORD.with(|r| {
            let r = r.borrow();
            match blocks(&r, std::ptr::null(), 0) {
                _ if r.store_answer != 0 => r.store_answer,
                Err(n) => n,
                Ok(list) => {
                    if list.len() * 8 <= cap as usize {
                        std::ptr::copy_nonoverlapping(list.as_ptr() as *const u8, buf, list.len() * 8);
                    }
                    list.len() as i64 * 8
                }
            }
        })
    }

    pub unsafe fn evict(hashes: *const u64, count: u32) -> i64 {
        note("evict", hashes, count)
    }

    pub unsafe fn evict_after(hashes: *const u64, count: u32) -> i64 {
        note("evict_after", hashes, count)
    }

    pub unsafe fn retain(hashes: *const u64, count: u32, at: *const u8, at_len: u32, scope: *const u8, scope_len: u32) -> i64 {
        let scope = (!scope.is_null()).then(|| super::text(scope, scope_len));
        RECORD.with(|r| {
            let mut r = r.borrow_mut();
            match blocks(&r, hashes, count) {
                _ if r.store_answer != 0 => r.store_answer,
                Err(n) => n,
                Ok(list) => {
                    r.retains.push((list, claims(at, at_len), scope));
                    0
                }
            }
        })
    }

    unsafe fn note(function: &'static str, hashes: *const u64, count: u32) -> i64 {
        RECORD.with(|r| {
            let mut r = r.borrow_mut();
            match blocks(&r, hashes, count) {
                _ if r.store_answer != 0 => r.store_answer,
                Err(n) => n,
                Ok(list) => {
                    r.evicts.push((function, list));
                    0
                }
            }
        })
    }
}

pub(crate) mod gpu {
    use super::{blocks, RECORD};
    use crate::abi::{DeviceInfo, DEVICE_HOST_MEMORY, RESIDENCY_ABSENT, RESIDENCY_DEVICE, SIZE_DEVICE_INFO};

    pub unsafe fn residency(hashes: *const u64, count: u32, buf: *mut u8, cap: u32) -> i64 {
        RECORD.with(|r| {
            let r = r.borrow();
            match blocks(&r, hashes, count) {
                _ if r.device_answer != 0 => r.device_answer,
                Err(n) => n,
                Ok(list) => {
                    if list.len() <= cap as usize {
                        for (i, h) in list.iter().enumerate() {
                            *buf.add(i) = if r.on_device.contains(h) { RESIDENCY_DEVICE } else { RESIDENCY_ABSENT };
                        }
                    }
                    list.len() as i64
                }
            }
        })
    }

    /// The device has room for 64 blocks of 1 MiB.
    pub unsafe fn info(buf: *mut u8, cap: u32) -> i64 {
        RECORD.with(|r| {
            let r = r.borrow();
            if r.device_answer != 0 {
                return r.device_answer;
            }
            let info = DeviceInfo { device: DEVICE_HOST_MEMORY, zero: 0, block_bytes: 1 << 20, blocks: 64, used: r.on_device.len() as u64 };
            if cap as usize >= SIZE_DEVICE_INFO {
                std::ptr::copy_nonoverlapping(&info as *const DeviceInfo as *const u8, buf, SIZE_DEVICE_INFO);
            }
            SIZE_DEVICE_INFO as i64
        })
    }

    pub unsafe fn prefetch(hashes: *const u64, count: u32) -> i64 {
        RECORD.with(|r| {
            let mut r = r.borrow_mut();
            match blocks(&r, hashes, count) {
                _ if r.device_answer != 0 => r.device_answer,
                Err(n) => n,
                Ok(list) => {
                    r.device.push(list);
                    0
                }
            }
        })
    }
}

unsafe fn text(at: *const u8, len: u32) -> String {
    String::from_utf8_lossy(std::slice::from_raw_parts(at, len as usize)).into_owned()
}

pub(crate) mod session {
    use super::{give, text, RECORD};
    use crate::abi::{Node, LINEAGE_FLAG_ANCHOR};

    pub unsafe fn frontiers(session: *const u8, session_len: u32, buf: *mut u8, cap: u32) -> i64 {
        RECORD.with(|r| give(r.borrow().fleet.frontiers(&text(session, session_len)), buf, cap))
    }

    #[allow(clippy::too_many_arguments)]
    pub unsafe fn lineage(session: *const u8, session_len: u32, worker: *const Node, rank: u32, anchor: i64, flags: u32, buf: *mut u8, cap: u32) -> i64 {
        let anchor = (flags & LINEAGE_FLAG_ANCHOR != 0).then(|| anchor as u64);
        RECORD.with(|r| give(r.borrow().fleet.lineage(&text(session, session_len), *worker, rank, anchor), buf, cap))
    }

    pub unsafe fn exclusive(session: *const u8, session_len: u32, worker: *const Node, rank: u32, buf: *mut u8, cap: u32) -> i64 {
        RECORD.with(|r| give(r.borrow().fleet.exclusive(&text(session, session_len), *worker, rank), buf, cap))
    }

    pub unsafe fn node(hash: i64, buf: *mut u8, cap: u32) -> i64 {
        RECORD.with(|r| give(r.borrow().fleet.node(hash as u64), buf, cap))
    }
}

pub(crate) mod worker {
    use super::{give, RECORD};
    use crate::abi::Node;

    pub unsafe fn get(worker: *const Node, rank: u32, buf: *mut u8, cap: u32) -> i64 {
        RECORD.with(|r| give(r.borrow().fleet.worker(*worker, rank), buf, cap))
    }

    pub unsafe fn list(buf: *mut u8, cap: u32) -> i64 {
        RECORD.with(|r| give(r.borrow().fleet.all(), buf, cap))
    }
}
