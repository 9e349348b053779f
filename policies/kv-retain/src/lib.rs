//! kv-retain: the handler of kv.retain. It judges one action at a time, by rules that
//! hold over all kv.retain actions of the envelope, has the host's block store keep what a
//! sound claim names, and passes it on.
//! README.md says every rule with its reason.
#![cfg_attr(target_arch = "wasm32", no_std)]

mod blocks;
mod claim;
mod order;

use claim::{Claims, Fault, Verdict};
use core::fmt;
use kvrt::{abi::*, reject, request_hashes, warn, Action, Answer, Envelope, Handler, Text, Value, Writer};

/// How many kv.retain actions one envelope may have.
const MAX_ACTIONS: usize = 16;
/// How many directives these may have together.
const MAX_DIRECTIVES: usize = 128;

// What a sender may make this handler look at. Beyond that it says so instead of running
// out of fuel, which would cost the instance.

/// Keys of a payload.
const MAX_KEYS: usize = 256;
/// Bytes of a version.
const MAX_VERSION: usize = 64;
/// Bytes of a scope.
const MAX_SCOPE: usize = 4096;
/// Directives of claims that are rejected.
const MAX_IN_VAIN: usize = 512;
/// Block hashes, unless all are integers.
const MAX_TEXTS: usize = 4096;
/// Blocks of a request that is retained here: each costs 64 of fuel.
const MAX_BLOCKS: usize = 16384;

/// What becomes of an envelope that asks for more than it may.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A front end's: what breaks a rule of the envelope is rejected.
    Strict,
    /// An executor's: directives that are too many are cut off, and each action's
    /// priorities are judged by themselves.
    Lenient,
}

/// The guest.
pub struct Retain {
    mode: Mode,
    pass: bool, // what this host cannot retain
}

impl Retain {
    /// Reads the parameters: `{"mode": "strict", "unable": "pass"}`.
    pub fn new(parameters: Value) -> Result<Retain, Text> {
        let mut retain = Retain { mode: Mode::Strict, pass: true };
        if !parameters.is_absent() && !parameters.is_null() && !parameters.is_map() {
            return Err(Text::new(format_args!("parameters must be an object, not {}", parameters.kind())));
        }
        for (key, val) in parameters.entries() {
            match (key.str(), val.str()) {
                (Some("mode"), Some("strict")) => retain.mode = Mode::Strict,
                (Some("mode"), Some("lenient")) => retain.mode = Mode::Lenient,
                (Some("unable"), Some("pass")) => retain.pass = true,
                (Some("unable"), Some("reject")) => retain.pass = false,
                (Some("mode"), _) => return Err(Text::new(format_args!("mode must be 'strict' or 'lenient'"))),
                (Some("unable"), _) => return Err(Text::new(format_args!("unable must be 'pass' or 'reject'"))),
                (key, _) => {
                    let key = Quoted(key.unwrap_or_default());
                    return Err(Text::new(format_args!("unknown parameter {}: kv-retain knows mode and unable", key)));
                }
            }
        }
        Ok(retain)
    }
}

impl Handler for Retain {
    fn handle(&self, action: Action, envelope: Envelope) -> Answer {
        if action.position() >= MAX_ACTIONS {
            return reject!(REASON_LIMIT_EXCEEDED, "at most {} kv.retain actions per envelope", MAX_ACTIONS);
        }
        let version = action.version();
        if !supported(version) {
            let version = Quoted(version.unwrap_or_default());
            return reject!(REASON_UNSUPPORTED_ACTION_VERSION, "unsupported kv.retain action_version {}", version);
        }
        let payload = action.payload();
        if !payload.is_map() {
            return reject!(REASON_MALFORMED_ACTION, "payload must be a mapping, not {}", payload.kind());
        }
        if payload.len() > MAX_KEYS {
            return reject!(REASON_LIMIT_EXCEEDED, "payload has {} keys, at most {} are allowed", payload.len(), MAX_KEYS);
        }
        let answer = match schema(payload) {
            Schema::Blocks => blocks::judge(payload),
            Schema::Mixed(key) => {
                reject!(REASON_INVALID_PAYLOAD, "{} cannot be combined with scope or directives", Quoted(key))
            }
            Schema::Claim => self.claim(action, envelope),
        };
        if version.is_none() && !matches!(answer, Answer::Reject { .. }) {
            warn!("kv.retain without an action_version: taken as 1.0");
        }
        answer
    }
}

impl Retain {
    /// Judges a claim after those before it: what was rejected leaves no trace.
    fn claim(&self, action: Action, envelope: Envelope) -> Answer {
        let mut claims = Claims::new(self.mode);
        for earlier in envelope.before(action.position()) {
            let payload = earlier.payload();
            if supported(earlier.version()) && payload.len() <= MAX_KEYS && matches!(schema(payload), Schema::Claim) {
                let _ = claims.add(payload);
            }
        }
        match claims.add(action.payload()) {
            Ok(verdict) => match (self.keep(claims.tokens(), action.payload().get("scope").str()), verdict) {
                (Answer::Accept, Verdict::Cut(keep)) => Answer::Write(Writer::shorten(action, "directives", keep)),
                (answer, _) => answer,
            },
            Err(fault @ (Fault::Directives | Fault::InVain | Fault::ScopeLength)) => reject!(REASON_LIMIT_EXCEEDED, "{}", fault),
            Err(fault) => reject!(REASON_INVALID_PAYLOAD, "{}", fault),
        }
    }

    /// Has the block store keep what a sound claim names of the request's own blocks.
    fn keep(&self, tokens: &[StoreClaim], scope: Option<&str>) -> Answer {
        if tokens.is_empty() {
            return Answer::Accept;
        }
        let answer = match request_hashes(&mut []) {
            Ok(blocks) if blocks > MAX_BLOCKS => {
                if !self.pass {
                    return reject!(REASON_LIMIT_EXCEEDED, "the request has more than {} blocks", MAX_BLOCKS);
                }
                warn!("kv.retain is passed on, and nothing is retained here: the request has more than {} blocks", MAX_BLOCKS);
                return Answer::Accept;
            }
            Ok(_) => kvrt::retain(&[], tokens, scope),
            Err(reason) => Answer::Refused(reason),
        };
        match answer {
            Answer::Refused(reason) if self.pass && cannot(reason) => Answer::Accept,
            answer => answer,
        }
    }
}

/// Why a host function refused, when this host is not fit for what it was asked.
fn cannot(reason: u32) -> bool {
    reason == REASON_UNAVAILABLE || reason == REASON_NOT_FOUND
}

/// Two schemas go by the name kv.retain, told apart by their keys.
enum Schema<'a> {
    Claim,
    Blocks,
    Mixed(&'a str),
}

fn schema(payload: Value) -> Schema {
    let (mut claim, mut blocks) = (false, None);
    for (key, _) in payload.entries() {
        match key.str() {
            Some("scope" | "directives") => claim = true,
            Some(key) if blocks::KEYS.contains(&key) => blocks = Some(key),
            _ => {}
        }
    }
    match (claim, blocks) {
        (true, Some(key)) => Schema::Mixed(key),
        (false, Some(_)) => Schema::Blocks,
        _ => Schema::Claim,
    }
}

/// Whether the text before the first dot is ASCII digits that make 1. An action
/// without a version is taken as 1.0.
fn supported(version: Option<&str>) -> bool {
    match version {
        None => true,
        Some(v) if v.len() > MAX_VERSION => false,
        Some(v) => {
            let major = v.split('.').next().unwrap_or_default();
            major.bytes().all(|b| b.is_ascii_digit()) && major.trim_start_matches('0') == "1"
        }
    }
}

/// Text in single quotes, as kv.retain's own messages have it.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("'")?;
        for c in self.0.chars() {
            match c {
                '\'' | '\\' => {
                    f.write_str("\\")?;
                    fmt::Write::write_char(f, c)?;
                }
                '\n' => f.write_str("\\n")?,
                c if c < ' ' => f.write_str("\\?")?,
                c => fmt::Write::write_char(f, c)?,
            }
        }
        f.write_str("'")
    }
}

kvrt::guest!(Retain: handler; init = Retain::new);
