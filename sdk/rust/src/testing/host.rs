//! The host functions of a test: they record what they were asked, per thread.

use super::fleet::{give, Fleet};
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

    pub unsafe fn discard() -> i32 {
        0
    }

    pub unsafe fn finish(_aborted: u32) -> i32 {
        0
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
