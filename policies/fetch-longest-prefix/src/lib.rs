//! fetch-longest-prefix: a policy that lets the selected worker fetch the request's
//! prefix from the worker that has most of it. README.md says every rule with its reason.
#![cfg_attr(target_arch = "wasm32", no_std)]

use core::cmp::Ordering;
use kvrt::{abi::*, is, reject, Answer, Context, Policy, Text, Value, Worker, Writer};

/// How many candidates are looked at. With more there is no answer: running out of fuel
/// would cost the instance.
const MAX_CANDIDATES: usize = 16_384;

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

    /// The longest prefix of the request that a worker has in the tiers that count;
    /// `None` when nobody tells.
    fn prefix(&self, w: Worker) -> Option<u32> {
        let tier = |bit: u32, n: Option<u32>| if self.tiers & bit != 0 { n } else { None };
        tier(GPU, w.matched_gpu())
            .max(tier(CPU, w.matched_cpu()))
            .max(tier(DISK, w.matched_disk()))
            .max(tier(EXTERNAL, w.matched_external()))
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
        (Some(a), Some(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => match (a.negative(), b.negative()) {
            (None, None) => a.u64().cmp(&b.u64()),
            (Some(a), Some(b)) => a.cmp(&b),
            (a, _) => if a.is_some() { Ordering::Less } else { Ordering::Greater },
        },
    }
}

/// Whether an envelope holds a kv.fetch.
fn fetches(hint: Value) -> bool {
    hint.get("actions").elems().any(|a| is(a.get("action_type").str().unwrap_or_default(), "kv.fetch"))
}

impl Policy for Fetch {
    fn formulate(&self, c: Context) -> Answer {
        if self.skip && (fetches(c.request_hint()) || fetches(c.selection_hint())) {
            return Answer::Accept;
        }
        let target = c.selected();
        let own_type = target.worker_type().or(c.worker_type());
        let mut own = self.prefix(target);
        let mut best: Option<(u32, Worker)> = None;
        for (i, w) in c.candidates().into_iter().flatten().enumerate() {
            if i == MAX_CANDIDATES {
                return reject!(REASON_LIMIT_EXCEEDED, "more than {} candidates", MAX_CANDIDATES);
            }
            let n = match self.prefix(w) {
                Some(n) => n,
                None => continue,
            };
            if order(w.id(), target.id()).is_eq() {
                // The target itself, unless both say that they are different ranks.
                if w.dp_rank() == target.dp_rank() {
                    own = own.max(Some(n));
                    continue;
                }
                if w.dp_rank().is_none() || target.dp_rank().is_none() {
                    continue;
                }
            }
            if w.source_control_endpoint().unwrap_or_default().is_empty() || w.worker_type().or(c.worker_type()) != own_type {
                continue;
            }
            let better = match best {
                None => true,
                Some((most, b)) => match n.cmp(&most) {
                    Ordering::Equal => order(w.id(), b.id()).then(w.dp_rank().cmp(&b.dp_rank())).is_lt(),
                    other => other.is_gt(),
                },
            };
            if better {
                best = Some((n, w));
            }
        }
        let (n, source) = match (best, own) {
            (Some((n, w)), Some(own)) if n > own && n - own >= self.min_blocks => (n, w),
            _ => return Answer::Accept,
        };
        // A prefix that is longer than the request is a mistake of whoever counted.
        let hashes = match c.block_hashes().and_then(|h| h.get(..n as usize)) {
            Some(h) => h,
            None => return Answer::Accept,
        };
        let mut w = Writer::actions();
        w.action(Some("a1"), Some("kv.fetch"), Some("1.0"), |w| {
            let endpoint = w.str(source.source_control_endpoint().unwrap_or_default());
            let hashes = w.hashes(hashes);
            w.map(&[("source_control_endpoint", endpoint), ("block_hashes", hashes)])
        });
        Answer::Write(w)
    }
}

kvrt::guest!(Fetch: policy; init = Fetch::new);
