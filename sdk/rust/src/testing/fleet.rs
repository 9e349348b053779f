//! The lineage index and the catalogue of a test.

use super::json::Bytes;
use crate::abi::*;

/// What the index and the catalogue know. The index is on; workers have integer ids here.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// Switches the index off.
    pub index_off: bool,
    /// Chains of blocks: the session, its worker and rank, and the hashes.
    pub paths: Vec<(String, u64, Option<u32>, Vec<u64>)>,
    /// The catalogue: id, rank, type and source control endpoint.
    pub workers: Vec<(u64, Option<u32>, Option<String>, Option<String>)>,
}

type Answer = Result<Vec<u64>, u32>;

fn place(hashes: &[u64], hash: u64) -> Option<usize> {
    hashes.iter().position(|h| *h == hash)
}

fn rank_of(rank: u32) -> Option<u32> {
    (rank != u32::MAX).then(|| rank)
}

impl Fleet {
    fn check(&self, session: &str) -> Result<(), u32> {
        if self.index_off {
            return Err(REASON_INDEX_OFF);
        }
        if self.paths.iter().all(|p| p.0 != session) {
            return Err(REASON_UNKNOWN_SESSION);
        }
        Ok(())
    }

    fn on(&self, session: &str, worker: Node, rank: u32) -> Vec<usize> {
        let here = |i: &usize| self.paths[*i].0 == session && self.holds(*i, worker, rank);
        (0..self.paths.len()).filter(here).collect()
    }

    fn holds(&self, i: usize, worker: Node, rank: u32) -> bool {
        worker.tag == TAG_U64 && self.paths[i].1 == worker.val && self.paths[i].2 == rank_of(rank)
    }

    pub(super) fn lineage(&self, session: &str, worker: Node, rank: u32, anchor: Option<u64>) -> Answer {
        if let (false, Some(a)) = (self.index_off, anchor) {
            if self.paths.iter().all(|p| place(&p.3, a).is_none()) {
                return Err(REASON_UNKNOWN_ANCHOR);
            }
        }
        self.check(session)?;
        let runs = self.on(session, worker, rank).into_iter().filter_map(|i| {
            let hashes = &self.paths[i].3;
            Some(&hashes[anchor.map_or(Some(0), |a| place(hashes, a))?..])
        });
        Ok(runs_of(runs.collect()))
    }

    pub(super) fn exclusive(&self, session: &str, worker: Node, rank: u32) -> Answer {
        self.check(session)?;
        let runs = self.on(session, worker, rank).into_iter().map(|i| {
            let others = |k: &usize| self.holds(*k, worker, rank) && (*k < i || self.paths[*k].0 != session);
            let others: Vec<usize> = (0..self.paths.len()).filter(others).collect();
            let held = |h: &u64| others.iter().any(|k| place(&self.paths[*k].3, *h).is_some());
            let shared = self.paths[i].3.iter().rposition(held).map_or(0, |at| at + 1);
            &self.paths[i].3[shared..]
        });
        Ok(runs_of(runs.filter(|r| !r.is_empty()).collect()))
    }

    pub(super) fn frontiers(&self, session: &str) -> Answer {
        self.check(session)?;
        let mine: Vec<_> = self.paths.iter().filter(|p| p.0 == session).collect();
        let mut b = Bytes::default();
        b.append(&[0; SIZE_FRONTIERS]);
        b.put_u32(OFF_FRONTIERS_HASH_KIND, HASH_KIND_ENGINE);
        b.put_u32(OFF_FRONTIERS_FRONTIERS_COUNT, mine.len() as u32);
        b.put_u32(OFF_FRONTIERS_FRONTIERS, SIZE_FRONTIERS as u32);
        for (_, worker, rank, hashes) in mine {
            let at = b.append(&[0; SIZE_FRONTIER]);
            b.put_node(at + OFF_FRONTIER_WORKER, integer(*worker));
            if let Some(rank) = rank {
                b.put_u32(at + OFF_FRONTIER_DP_RANK, *rank);
                b.put_u32(at + OFF_FRONTIER_PRESENT, WORKER_HAS_DP_RANK);
            }
            b.put(at + OFF_FRONTIER_HASH, &hashes.last().unwrap_or(&0).to_le_bytes());
            b.put_u32(at + OFF_FRONTIER_DEPTH, hashes.len() as u32);
        }
        Ok(b.words())
    }

    pub(super) fn node(&self, hash: u64) -> Answer {
        if self.index_off {
            return Err(REASON_INDEX_OFF);
        }
        let found: Vec<_> = self.paths.iter().filter_map(|p| Some((place(&p.3, hash)?, &p.3))).collect();
        let (at, hashes) = found.first().ok_or(REASON_NOT_FOUND)?;
        let mut children: Vec<_> = found.iter().filter_map(|(at, hashes)| hashes.get(at + 1)).collect();
        children.sort_unstable();
        children.dedup();
        let ends = found.iter().filter(|(at, hashes)| at + 1 == hashes.len()).count();
        let parent = at.checked_sub(1).map(|before| hashes[before]);
        let mut b = Bytes::default();
        b.append(&[0; SIZE_BLOCK_NODE]);
        b.put(OFF_BLOCK_NODE_HASH, &hash.to_le_bytes());
        b.put(OFF_BLOCK_NODE_PARENT, &parent.unwrap_or_default().to_le_bytes());
        b.put_u32(OFF_BLOCK_NODE_HAS_PARENT, parent.is_some() as u32);
        b.put_u32(OFF_BLOCK_NODE_HASH_KIND, HASH_KIND_ENGINE);
        b.put_u32(OFF_BLOCK_NODE_FRONTIERS, ends as u32);
        b.put_u32(OFF_BLOCK_NODE_CHILDREN, children.len() as u32);
        Ok(b.words())
    }

    fn put_worker(&self, b: &mut Bytes, at: usize, i: usize) {
        let (id, rank, kind, source) = &self.workers[i];
        b.put_node(at + OFF_WORKER_ID, integer(*id));
        if let Some(rank) = rank {
            b.put_u32(at + OFF_WORKER_DP_RANK, *rank);
            b.put_u32(at + OFF_WORKER_PRESENT, WORKER_HAS_DP_RANK);
        }
        for (off, text) in [(OFF_WORKER_WORKER_TYPE, kind), (OFF_WORKER_SOURCE_CONTROL_ENDPOINT, source)] {
            if let Some(text) = text {
                b.put_text(at + off, text);
            }
        }
    }

    pub(super) fn worker(&self, worker: Node, rank: u32) -> Answer {
        let is = |w: &(u64, Option<u32>, Option<String>, Option<String>)| worker.tag == TAG_U64 && w.0 == worker.val && w.1 == rank_of(rank);
        let i = self.workers.iter().position(is).ok_or(REASON_NOT_FOUND)?;
        let mut b = Bytes::default();
        b.append(&[0; SIZE_WORKER]);
        self.put_worker(&mut b, 0, i);
        Ok(b.words())
    }

    pub(super) fn all(&self) -> Answer {
        let mut b = Bytes::default();
        b.append(&[0; SIZE_WORKER_LIST]);
        b.put_u32(OFF_WORKER_LIST_WORKERS_COUNT, self.workers.len() as u32);
        b.put_u32(OFF_WORKER_LIST_WORKERS, SIZE_WORKER_LIST as u32);
        let first = b.append(&vec![0; SIZE_WORKER * self.workers.len()]);
        for i in 0..self.workers.len() {
            self.put_worker(&mut b, first + i * SIZE_WORKER, i);
        }
        Ok(b.words())
    }
}

fn integer(val: u64) -> Node {
    Node { tag: TAG_U64, ext: 0, zero: 0, len: 0, val }
}

fn runs_of(runs: Vec<&[u64]>) -> Vec<u64> {
    let mut b = Bytes::default();
    b.append(&[0; SIZE_LINEAGE]);
    b.put_u32(OFF_LINEAGE_HASH_KIND, HASH_KIND_ENGINE);
    b.put_u32(OFF_LINEAGE_PATHS_COUNT, runs.len() as u32);
    b.put_u32(OFF_LINEAGE_PATHS, SIZE_LINEAGE as u32);
    b.put_u32(OFF_LINEAGE_BLOCKS, runs.iter().map(|r| r.len()).sum::<usize>() as u32);
    let table = b.append(&vec![0; SIZE_PATH * runs.len()]);
    for (i, run) in runs.iter().enumerate() {
        let bytes: Vec<u8> = run.iter().flat_map(|h| h.to_le_bytes()).collect();
        let at = b.append(&bytes);
        b.put_u32(table + i * SIZE_PATH + OFF_PATH_HASHES, at as u32);
        b.put_u32(table + i * SIZE_PATH + OFF_PATH_HASHES_COUNT, run.len() as u32);
    }
    b.words()
}

/// Gives an answer to the guest if it fits, as a host does.
pub(super) unsafe fn give(answer: Answer, buf: *mut u8, cap: u32) -> i64 {
    match answer {
        Err(reason) => -(reason as i64),
        Ok(words) => {
            let n = words.len() * 8;
            if n <= cap as usize {
                std::ptr::copy_nonoverlapping(words.as_ptr() as *const u8, buf, n);
            }
            n as i64
        }
    }
}
