//! fetch-longest-prefix: a policy that lets the selected worker fetch the request's
//! prefix from the worker that has most of it. README.md says every rule with its reason.
#![cfg_attr(target_arch = "wasm32", no_std)]

use core::cmp::Ordering;
use kvrt::{abi::*, is, reject, Answer, Context, Policy, Text, Value, Worker, Writer};

// What a context may make this policy look at. Beyond that it says so or does nothing:
// running out of fuel would cost the instance.

/// Candidates, of which one counts once more for each 32 bytes of its id.
const MAX_CANDIDATES: u32 = 2048;
/// Keys of the hints that are there already, and of their actions together.
const MAX_KEYS: usize = 16_384;

const GPU: u32 = 1;
const CPU: u32 = 2;
const DISK: u32 = 4;
const EXTERNAL: u32 = 8;

/// The guest.
pub struct Fetch {
    tiers: u32,
    min_blocks: u32,
    skip: bool,
}

impl Fetch {
    /// Reads the parameters.
    pub fn new(parameters: Value) -> Result<Fetch, Text> {
        let mut f = Fetch { tiers: GPU | CPU | DISK, min_blocks: 1, skip: true };
        if !parameters.is_absent() && !parameters.is_null() && !parameters.is_map() {
            return Err(Text::new(format_args!("parameters must be an object, not {}", parameters.kind())));
        }
        for (key, v) in parameters.entries() {
            match key.str().unwrap_or_default() {
                "tiers" => f.tiers = tiers(v).ok_or_else(|| Text::new(format_args!("tiers must be a list of at least one of gpu, cpu, disk and external")))?,
                "min_blocks" => match v.u64() {
                    Some(n) if n > 0 && n <= u32::MAX as u64 => f.min_blocks = n as u32,
                    _ => return Err(Text::new(format_args!("min_blocks must be an integer in [1, 2^32)"))),
                },
                "after_fetch" => match v.str() {
                    Some("skip") => f.skip = true,
                    Some("add") => f.skip = false,
                    _ => return Err(Text::new(format_args!("after_fetch must be \"skip\" or \"add\""))),
                },
                key => return Err(Text::new(format_args!("unknown parameter \"{}\": fetch-longest-prefix knows tiers, min_blocks and after_fetch", key))),
            }
        }
        Ok(f)
    }

    /// The longest prefix of the request that a worker has in the tiers that count, and -1
    /// when nobody tells.
    fn prefix(&self, w: Worker) -> i64 {
        let tier = |bit: u32, n: Option<u32>| match n {
            Some(n) if self.tiers & bit != 0 => n as i64,
            _ => -1,
        };
        let memory = tier(GPU, w.matched_gpu()).max(tier(CPU, w.matched_cpu()));
        memory.max(tier(DISK, w.matched_disk())).max(tier(EXTERNAL, w.matched_external()))
    }
}

fn tiers(list: Value) -> Option<u32> {
    let mut set = 0;
    for t in list.elems() {
        set |= match t.str()? {
            "gpu" => GPU,
            "cpu" => CPU,
            "disk" => DISK,
            "external" => EXTERNAL,
            _ => return None,
        };
    }
    if set == 0 || !list.is_array() {
        return None;
    }
    Some(set)
}

/// The order of ids: integers by their value, then texts by their bytes.
fn order(a: Value, b: Value) -> Ordering {
    match (a.str(), b.str()) {
        (Some(a), Some(b)) => compare(a.as_bytes(), b.as_bytes()),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => match (a.negative(), b.negative()) {
            (None, None) => a.u64().cmp(&b.u64()),
            (Some(a), Some(b)) => a.cmp(&b),
            (a, _) => if a.is_some() { Ordering::Less } else { Ordering::Greater },
        },
    }
}

/// The order of bytes. What the texts have in common at their beginnings is passed over in
/// steps of eight: ids of one fleet differ at their ends.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (mut a, mut b) = (a, b);
    while a.len() >= 8 && b.len() >= 8 {
        let (x, rest_a) = a.split_at(8);
        let (y, rest_b) = b.split_at(8);
        if word(x) != word(y) {
            return word(x).cmp(&word(y));
        }
        a = rest_a;
        b = rest_b;
    }
    for (x, y) in a.iter().zip(b) {
        if x != y {
            return x.cmp(y);
        }
    }
    a.len().cmp(&b.len())
}

/// Whether two ids are the same. An integer and a text never are.
fn same(a: Value, b: Value) -> bool {
    let (x, y) = (a.raw().1, b.raw().1);
    x.tag == y.tag && if x.tag == TAG_STRING { is(a.str().unwrap_or_default(), b.str().unwrap_or_default()) } else { x.val == y.val }
}

/// Whether two workers are of one type; of which nobody tells, they are.
fn alike(a: Option<&str>, b: Option<&str>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => is(a, b),
        _ => a.is_none() && b.is_none(),
    }
}

fn word(b: &[u8]) -> u64 {
    let mut w = [0; 8];
    w.copy_from_slice(b);
    u64::from_be_bytes(w)
}

/// Whether an envelope holds a kv.fetch. One that has too many keys counts as one that does.
fn fetches(hint: Value) -> bool {
    let mut left = MAX_KEYS;
    let mut spend = |keys: usize| {
        let enough = keys <= left;
        left = left.saturating_sub(keys);
        enough
    };
    if !hint.is_map() {
        return false;
    }
    !spend(hint.len()) || hint.get("actions").elems().any(|a| !spend(1 + a.len()) || is(a.get("action_type").str().unwrap_or_default(), "kv.fetch"))
}

impl Policy for Fetch {
    fn formulate(&self, c: Context) -> Answer {
        if self.skip && (fetches(c.request_hint()) || fetches(c.selection_hint())) {
            return Answer::Accept;
        }
        let target = c.selected();
        let partition_type = c.worker_type();
        let own_type = target.worker_type().or(partition_type);
        let (target_id, target_rank) = (target.id(), target.dp_rank());
        let mut own = self.prefix(target);
        let (mut most, mut best) = (-1, target);
        let mut left = MAX_CANDIDATES;
        for w in c.candidates().into_iter().flatten() {
            let cost = 1 + w.id().raw().1.len / 32;
            if left < cost {
                return reject!(REASON_LIMIT_EXCEEDED, "more than {} candidates, or as much of their ids", MAX_CANDIDATES);
            }
            left -= cost;
            let n = self.prefix(w);
            if n < 0 {
                continue;
            }
            if same(w.id(), target_id) {
                // The target itself, unless both say that they are different ranks.
                if w.dp_rank() == target_rank {
                    own = own.max(n);
                    continue;
                }
                if w.dp_rank().is_none() || target_rank.is_none() {
                    continue;
                }
            }
            if n < most || w.source_control_endpoint().map_or(true, str::is_empty) || !alike(w.worker_type().or(partition_type), own_type) {
                continue;
            }
            if n > most || order(w.id(), best.id()).then_with(|| w.dp_rank().cmp(&best.dp_rank())).is_lt() {
                most = n;
                best = w;
            }
        }
        if own < 0 || most - own < self.min_blocks as i64 {
            return Answer::Accept;
        }
        // A prefix that is longer than the request is a mistake of whoever counted.
        let hashes = match c.block_hashes().and_then(|h| h.get(..most as usize)) {
            Some(h) => h,
            None => return Answer::Accept,
        };
        let mut w = Writer::actions();
        w.action(Some("a1"), Some("kv.fetch"), Some("1.0"), |w| {
            let endpoint = w.str(best.source_control_endpoint().unwrap_or_default());
            let hashes = w.hashes(hashes);
            w.map(&[("source_control_endpoint", endpoint), ("block_hashes", hashes)])
        });
        Answer::Write(w)
    }
}

kvrt::guest!(Fetch: policy; init = Fetch::new);
