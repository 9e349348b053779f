//! The Wasm side: memory, and the way from exports to traits and back. Used by
//! [`guest!`](crate::guest) only.
//!
//! Data, stack and everything static end at `__heap_base`. From there on lies the
//! arena that the host writes frames into, and behind it what a [`Writer`] writes,
//! which is forgotten when the next call begins. Both grow on demand.

use crate::abi::*;
use crate::value::Value;
use crate::{Action, Answer, Context, Document, Envelope, Handler, Parser, Policy, Text, Writer};
use core::arch::wasm32::{memory_grow, memory_size, unreachable};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unreachable()
}

const PAGE: u64 = 65536;

extern "C" {
    static __heap_base: u8;
}

static ARENA_END: AtomicUsize = AtomicUsize::new(0);

fn align(n: u64) -> u64 {
    (n + 7) & !7
}

/// Makes memory up to `end` usable; false when the limit forbids it.
pub(crate) fn reserve(end: u64) -> bool {
    let have = memory_size(0) as u64 * PAGE;
    end <= have || (end <= u32::MAX as u64 && memory_grow(0, ((end - have + PAGE - 1) / PAGE) as usize) != usize::MAX)
}

/// kvrt_arena: one buffer, at the same place always, that only grows.
pub fn arena(size: u32) -> i64 {
    // SAFETY: the linker defines the symbol; only its address is taken.
    let base = align(unsafe { core::ptr::addr_of!(__heap_base) } as u64);
    let end = base + align(size as u64);
    let had = ARENA_END.load(Relaxed) as u64;
    if end > had {
        if !reserve(end) {
            return 0;
        }
        ARENA_END.store(end as usize, Relaxed);
    }
    (base << 32 | (end.max(had) - base)) as i64
}

/// Bytes behind the arena that answers of the host take, and whether a writer writes
/// behind them.
static KEPT: AtomicUsize = AtomicUsize::new(0);
static WRITING: AtomicBool = AtomicBool::new(false);

/// Where a writer writes: behind the arena and what is kept there.
pub(crate) fn heap() -> *mut u8 {
    WRITING.store(true, Relaxed);
    (ARENA_END.load(Relaxed) + KEPT.load(Relaxed)) as *mut u8
}

/// Forgets what the call before left there.
pub(crate) fn heap_reset() {
    KEPT.store(0, Relaxed);
    WRITING.store(false, Relaxed);
}

/// Takes n bytes that stay until the next call begins; `None` when a writer is in the way
/// or the memory limit is reached.
pub(crate) fn heap_take(n: usize) -> Option<*mut u8> {
    let at = ARENA_END.load(Relaxed) + KEPT.load(Relaxed);
    let end = at as u64 + align(n as u64);
    if WRITING.load(Relaxed) || !reserve(end) {
        return None;
    }
    KEPT.store(end as usize - ARENA_END.load(Relaxed), Relaxed);
    Some(at as *mut u8)
}

/// # Safety
/// The host calls with a frame that it has just written and leaves it alone.
pub unsafe fn frame<'a>(at: *const u8, len: u32) -> &'a [u8] {
    core::slice::from_raw_parts(at, len as usize)
}

/// The guest, made once by init and only read after that.
pub struct Cell<T>(UnsafeCell<Option<T>>);

// SAFETY: an instance has one thread, and a role is never entered twice.
unsafe impl<T> Sync for Cell<T> {}

impl<T> Cell<T> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Cell(UnsafeCell::new(None))
    }

    fn get(&self) -> &T {
        // SAFETY: written by init alone, which returns before a role is called.
        match unsafe { &*self.0.get() } {
            Some(t) => t,
            None => unreachable(),
        }
    }
}

#[repr(C, align(8))]
struct Said {
    answer: crate::abi::Answer,
    text: [u8; 512],
}

struct Reply(UnsafeCell<Said>);

// SAFETY: as for Cell.
unsafe impl Sync for Reply {}

const NONE: Span = Span { off: 0, len: 0 };
const EMPTY: crate::abi::Answer = crate::abi::Answer { status: 0, reason: 0, detail: NONE, body: NONE, features: 0, zero: 0 };

static REPLY: Reply = Reply(UnsafeCell::new(Said { answer: EMPTY, text: [0; 512] }));

fn rejected(reason: u32, detail: &Text) -> i64 {
    // SAFETY: see Reply.
    let said = unsafe { &mut *REPLY.0.get() };
    let bytes = detail.as_bytes();
    if let Some(to) = said.text.get_mut(..bytes.len()) {
        to.copy_from_slice(bytes);
    }
    said.answer = crate::abi::Answer {
        status: STATUS_REJECTED,
        reason,
        detail: Span { off: SIZE_ANSWER as u32, len: bytes.len() as u32 },
        ..EMPTY
    };
    (said as *const Said as i64) << 32 | (SIZE_ANSWER + bytes.len()) as i64
}

fn answer(a: Answer) -> i64 {
    match a {
        Answer::Accept => 0,
        Answer::Refused(reason) => -(reason as i64),
        Answer::Reject { reason, detail } => rejected(reason, &detail),
        Answer::Write(w) => match w.finish() {
            Some(bytes) => (bytes.as_ptr() as i64) << 32 | bytes.len() as i64,
            None => rejected(REASON_LIMIT_EXCEEDED, &Writer::no_room()),
        },
    }
}

pub fn init<T>(guest: &Cell<T>, frame: &[u8], make: impl FnOnce(Value) -> Result<T, Text>, features: u64) -> i64 {
    match make(Value::at(frame, OFF_INIT_FRAME_PARAMETERS)) {
        Ok(t) => {
            // SAFETY: nothing borrows from the cell before the first init is done.
            unsafe { *guest.0.get() = Some(t) };
            if features == 0 {
                return 0;
            }
            // SAFETY: see Reply.
            let said = unsafe { &mut *REPLY.0.get() };
            said.answer = crate::abi::Answer { status: STATUS_ACCEPTED, features, ..EMPTY };
            (said as *const Said as i64) << 32 | SIZE_ANSWER as i64
        }
        Err(detail) => rejected(REASON_INVALID_PAYLOAD, &detail),
    }
}

pub fn handle<T: Handler>(guest: &Cell<T>, frame: &[u8], position: u32) -> i64 {
    let envelope = Envelope::new(frame);
    let action: Option<Action> = envelope.action(position as usize);
    match action {
        Some(action) => answer(guest.get().handle(action, envelope)),
        None => -(REASON_HANDLER_ERROR as i64),
    }
}

pub fn parse<T: Parser>(guest: &Cell<T>, frame: &[u8]) -> i64 {
    answer(guest.get().parse(Document::new(frame)))
}

pub fn formulate<T: Policy>(guest: &Cell<T>, frame: &[u8]) -> i64 {
    crate::lineage::forget();
    answer(guest.get().formulate(Context::new(frame)))
}
