//! What a policy may ask about sessions and workers (capabilities kvrt_session and
//! kvrt_worker).

use crate::abi::*;
use crate::frame::{Context, Worker};
use crate::value::{u32_at, u64_at, Value};
use core::mem::MaybeUninit;

#[cfg(target_arch = "wasm32")]
use crate::abi as host;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::host;

/// One data-parallel rank of a worker. A rank that nobody told is not rank 0.
#[derive(Clone, Copy)]
pub struct Rank<'a> {
    /// The worker's id: an integer or a string.
    pub id: Value<'a>,
    /// Its data-parallel rank.
    pub dp_rank: Option<u32>,
}

impl<'a> From<Worker<'a>> for Rank<'a> {
    fn from(w: Worker<'a>) -> Self {
        Rank { id: w.id(), dp_rank: w.dp_rank() }
    }
}

impl<'a> From<Frontier<'a>> for Rank<'a> {
    fn from(f: Frontier<'a>) -> Self {
        f.on()
    }
}

impl Rank<'_> {
    /// The id as a host function takes it, where a text is found by its address; and the
    /// rank, of which -1 is none.
    fn parts(self) -> (Node, u32) {
        let (base, mut node) = self.id.raw();
        if node.tag == TAG_STRING {
            node.val = base.as_ptr() as u64 + node.val;
        }
        (node, self.dp_rank.unwrap_or(u32::MAX))
    }
}

/// Paths of blocks, each block the parent of the next.
#[derive(Clone, Copy)]
pub struct Lineage<'a> {
    base: &'a [u8],
}

impl<'a> Lineage<'a> {
    /// The number of paths.
    pub fn len(self) -> usize {
        u32_at(self.base, OFF_LINEAGE_PATHS_COUNT) as usize
    }

    /// Whether there is no path: the session has nothing on this worker.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The blocks of all paths together.
    pub fn blocks(self) -> usize {
        u32_at(self.base, OFF_LINEAGE_BLOCKS) as usize
    }

    /// What the block hashes are: one of the `HASH_KIND_` constants.
    pub fn hash_kind(self) -> u32 {
        u32_at(self.base, OFF_LINEAGE_HASH_KIND)
    }

    /// The paths.
    pub fn paths(self) -> impl Iterator<Item = &'a [u64]> {
        let base = self.base;
        let first = u32_at(base, OFF_LINEAGE_PATHS) as usize;
        (0..self.len()).map(move |i| {
            let at = first + i * SIZE_PATH;
            let (val, len) = (u32_at(base, at + OFF_PATH_HASHES) as u64, u32_at(base, at + OFF_PATH_HASHES_COUNT));
            Value::new(base, Node { tag: TAG_U64S, ext: 0, zero: 0, len, val }).hashes().unwrap_or(&[])
        })
    }

    /// The longest path; the first of them, and empty when there is none.
    pub fn longest(self) -> &'a [u64] {
        self.paths().fold(&[], |best, p| if p.len() > best.len() { p } else { best })
    }
}

/// The deepest known block of a session's chain on a worker.
#[derive(Clone, Copy)]
pub struct Frontier<'a> {
    base: &'a [u8],
    off: usize,
}

impl<'a> Frontier<'a> {
    /// The worker that it is on.
    pub fn on(self) -> Rank<'a> {
        let told = u32_at(self.base, self.off + OFF_FRONTIER_PRESENT) & WORKER_HAS_DP_RANK != 0;
        Rank {
            id: Value::at(self.base, self.off + OFF_FRONTIER_WORKER),
            dp_rank: told.then(|| u32_at(self.base, self.off + OFF_FRONTIER_DP_RANK)),
        }
    }

    /// The block.
    pub fn hash(self) -> u64 {
        u64_at(self.base, self.off + OFF_FRONTIER_HASH)
    }

    /// Blocks from the root, this one included.
    pub fn depth(self) -> u32 {
        u32_at(self.base, self.off + OFF_FRONTIER_DEPTH)
    }
}

/// What the index knows of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The block before it; `None` for a root.
    pub parent: Option<u64>,
    /// What the hashes are: one of the `HASH_KIND_` constants.
    pub hash_kind: u32,
    /// Frontiers that stand on it, over all sessions and workers.
    pub frontiers: u32,
    /// Known blocks that follow it.
    pub children: u32,
}

/// What is asked about sessions and workers. The error is one of the `REASON_`
/// constants: `REASON_INDEX_OFF`, `REASON_UNKNOWN_SESSION` and `REASON_UNKNOWN_ANCHOR`
/// are three different things, and an empty lineage is a fourth. An answer stays until
/// the role returns. All of one call share 128 KiB; one that finds no room there lies
/// behind the arena, where a [`Writer`](crate::Writer) writes as well: ask before you
/// write. Then it is `REASON_LIMIT_EXCEEDED`, and so it is when there is no memory.
///
/// ```
/// # use kvrt::{Answer, Context, Writer};
/// # fn formulate(c: Context) -> Option<Answer> {
/// let lineage = c.lineage(c.session_id()?, c.selected()).ok()?;
/// let mut w = Writer::envelope("0.1", c.request_id()?);
/// w.action(Some("a1"), Some("kv.retain"), Some("1.0"), |w| {
///     let hashes = w.hashes(lineage.longest());
///     w.map(&[("block_hashes", hashes)])
/// });
/// # Some(Answer::Write(w))
/// # }
/// ```
impl<'a> Context<'a> {
    /// The paths of a session on a worker, each from the root to a frontier.
    pub fn lineage<'r>(self, session: &str, on: impl Into<Rank<'r>>) -> Result<Lineage<'a>, u32> {
        paths(session, on.into(), None)
    }

    /// The part of the paths from an anchor on; paths without it are left out.
    pub fn lineage_from<'r>(self, session: &str, on: impl Into<Rank<'r>>, anchor: u64) -> Result<Lineage<'a>, u32> {
        paths(session, on.into(), Some(anchor))
    }

    /// The blocks on a worker that no other session's path there has, each in one path.
    pub fn exclusive<'r>(self, session: &str, on: impl Into<Rank<'r>>) -> Result<Lineage<'a>, u32> {
        let (id, rank) = on.into().parts();
        // SAFETY: text and node are valid for the length of the call, and ask vouches for the buffer.
        let base = ask(|buf, cap| unsafe { host::session::exclusive(session.as_ptr(), session.len() as u32, &id, rank, buf, cap) })?;
        Ok(Lineage { base })
    }

    /// The frontiers of a session on all workers, in no order.
    pub fn frontiers(self, session: &str) -> Result<impl Iterator<Item = Frontier<'a>>, u32> {
        // SAFETY: as for exclusive.
        let base: &'a [u8] = ask(|buf, cap| unsafe { host::session::frontiers(session.as_ptr(), session.len() as u32, buf, cap) })?;
        let first = u32_at(base, OFF_FRONTIERS_FRONTIERS) as usize;
        let count = u32_at(base, OFF_FRONTIERS_FRONTIERS_COUNT) as usize;
        Ok((0..count).map(move |i| Frontier { base, off: first + i * SIZE_FRONTIER }))
    }

    /// Looks a block up: `REASON_NOT_FOUND` when the index does not know it.
    pub fn block(self, hash: u64) -> Result<Block, u32> {
        let mut room = MaybeUninit::<BlockNode>::zeroed();
        // SAFETY: the buffer has the size that is told, and every bit pattern is a record.
        let (n, b) = unsafe { (host::session::node(hash as i64, room.as_mut_ptr() as *mut u8, SIZE_BLOCK_NODE as u32), room.assume_init()) };
        if n < 0 {
            return Err(n.unsigned_abs() as u32);
        }
        let parent = (b.has_parent != 0).then(|| b.parent);
        Ok(Block { parent, hash_kind: b.hash_kind, frontiers: b.frontiers, children: b.children })
    }

    /// Looks a worker up in the catalogue. What is known of one request only
    /// (`matched_gpu`, ...) is not given.
    pub fn worker<'r>(self, rank: impl Into<Rank<'r>>) -> Option<Worker<'a>> {
        let (id, rank) = rank.into().parts();
        // SAFETY: as for exclusive.
        let base = ask(|buf, cap| unsafe { host::worker::get(&id, rank, buf, cap) }).ok()?;
        Some(Worker::new(base, 0))
    }

    /// The catalogue, one worker for each rank.
    pub fn workers(self) -> Result<impl Iterator<Item = Worker<'a>>, u32> {
        // SAFETY: as for exclusive.
        let base: &'a [u8] = ask(|buf, cap| unsafe { host::worker::list(buf, cap) })?;
        let first = u32_at(base, OFF_WORKER_LIST_WORKERS) as usize;
        let count = u32_at(base, OFF_WORKER_LIST_WORKERS_COUNT) as usize;
        Ok((0..count).map(move |i| Worker::new(base, first + i * SIZE_WORKER)))
    }
}

fn paths<'a>(session: &str, on: Rank, anchor: Option<u64>) -> Result<Lineage<'a>, u32> {
    let (id, rank) = on.parts();
    let flags = anchor.map_or(0, |_| LINEAGE_FLAG_ANCHOR);
    let anchor = anchor.unwrap_or_default() as i64;
    // SAFETY: as for exclusive.
    let base = ask(|buf, cap| unsafe { host::session::lineage(session.as_ptr(), session.len() as u32, &id, rank, anchor, flags, buf, cap) })?;
    Ok(Lineage { base })
}

/// Room for the answers of one call.
#[cfg(target_arch = "wasm32")]
mod room {
    use core::cell::UnsafeCell;
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    const SIZE: usize = 128 << 10;

    #[repr(C, align(8))]
    struct Room(UnsafeCell<[u8; SIZE]>);

    // SAFETY: an instance has one thread, and a role is never entered twice.
    unsafe impl Sync for Room {}

    static ROOM: Room = Room(UnsafeCell::new([0; SIZE]));
    static USED: AtomicUsize = AtomicUsize::new(0);

    /// Forgets the answers of the call before.
    pub fn forget() {
        USED.store(0, Relaxed);
        crate::guest::heap_reset();
    }

    /// Makes a call that writes to (buf, cap). The answer is the caller's until forget.
    pub fn ask<'a>(call: impl Fn(*mut u8, u32) -> i64) -> Result<&'a [u8], u32> {
        let used = USED.load(Relaxed);
        let at = (ROOM.0.get() as *mut u8).wrapping_add(used);
        let n = call(at, (SIZE - used) as u32);
        if n < 0 {
            return Err(n.unsigned_abs() as u32);
        }
        let n = n as usize;
        if n > SIZE - used {
            let at = crate::guest::heap_take(n).ok_or(crate::abi::REASON_LIMIT_EXCEEDED)?;
            if call(at, n as u32) != n as i64 {
                return Err(crate::abi::REASON_UNAVAILABLE);
            }
            // SAFETY: heap_take gives each run of memory once between two calls of forget.
            return Ok(unsafe { core::slice::from_raw_parts(at, n) });
        }
        USED.store(used + (n + 7 & !7), Relaxed);
        // SAFETY: the run lies in the room, the host has written it, and nobody writes to
        // it again before forget.
        Ok(unsafe { core::slice::from_raw_parts(at, n) })
    }
}

/// In a test an answer is an allocation of exactly its size, never freed.
#[cfg(not(target_arch = "wasm32"))]
mod room {
    pub fn ask<'a>(call: impl Fn(*mut u8, u32) -> i64) -> Result<&'a [u8], u32> {
        let n = call(core::ptr::null_mut(), 0);
        if n < 0 {
            return Err(n.unsigned_abs() as u32);
        }
        let words: &'static mut [u64] = Box::leak(vec![0; (n as usize + 7) / 8].into_boxed_slice());
        call(words.as_mut_ptr() as *mut u8, n as u32);
        // SAFETY: integers are bytes.
        Ok(unsafe { core::slice::from_raw_parts(words.as_ptr() as *const u8, n as usize) })
    }
}

use room::ask;
#[cfg(target_arch = "wasm32")]
pub(crate) use room::forget;
