//! The schema {scope, directives}, as vLLM defines it.

use crate::order::{Order, Point, Rise};
use crate::{Mode, Quoted, MAX_DIRECTIVES, MAX_IN_VAIN, MAX_SCOPE};
use core::fmt;
use kvrt::{abi::StoreClaim, is, Value};

/// The highest priority.
const MAX_PRIORITY: u64 = 100;
/// 30 days in seconds.
const MAX_DURATION: f64 = 2_592_000.0;

/// What is wrong with a claim. It becomes text only for the action that is judged.
#[derive(Clone, Copy)]
pub enum Fault<'a> {
    ScopeKind,
    ScopeLength,
    ScopeShared,
    DirectivesKind,
    Directives,
    InVain,
    Directive,
    Unknown(Value<'a>),
    Priority,
    Start,
    End,
    Duration,
    CoversOutput,
    CoversOutputRange,
    Rises(Rise),
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Fault::ScopeKind => "scope must be a string or null",
            Fault::ScopeLength => "scope must be at most 4096 bytes long",
            Fault::ScopeShared => "kv.retain actions in one envelope must share a scope",
            Fault::DirectivesKind => "directives must be a list",
            Fault::Directives => "at most 128 directives per envelope",
            Fault::InVain => "at most 512 directives in rejected actions per envelope",
            Fault::Directive => "each directive must be an object",
            Fault::Unknown(directive) => return unknown_fields(*directive, f),
            Fault::Priority => "priority must be an integer in [0, 100]",
            Fault::Start => "start must be a non-negative integer",
            Fault::End => "end must be null or an integer greater than start",
            Fault::Duration => "duration must be null or a number in [0, 2.592e+06]",
            Fault::CoversOutput => "covers_output must be a boolean",
            Fault::CoversOutputRange => "covers_output cannot be combined with start or end",
            Fault::Rises(rise) => {
                let rule = "priorities must be non-increasing across token positions (prefix-cache constraint)";
                return write!(f, "{}: {}", rule, rise);
            }
        })
    }
}

/// A sound claim: as it is, or with that many of its directives.
pub enum Verdict {
    Whole,
    Cut(usize),
}

/// The sound claims of an envelope so far.
pub struct Claims<'a> {
    mode: Mode,
    scope: Option<Option<&'a str>>, // what the first of them set
    directives: usize,
    in_vain: usize, // directives of claims that were not sound
    order: Order, // of all directives taken in
    own: Order,   // of the claim that is judged
    tokens: [StoreClaim; MAX_DIRECTIVES], // what they say of the request's own tokens
    listed: usize,
}

impl<'a> Claims<'a> {
    pub fn new(mode: Mode) -> Claims<'a> {
        Claims { mode, scope: None, directives: 0, in_vain: 0, order: Order::new(), own: Order::new(), tokens: [NOTHING; MAX_DIRECTIVES], listed: 0 }
    }

    /// Judges one claim and takes it in when it is sound.
    pub fn add(&mut self, payload: Value<'a>) -> Result<Verdict, Fault<'a>> {
        let scope = payload.get("scope");
        match scope.str() {
            Some(s) if s.len() > MAX_SCOPE => return Err(Fault::ScopeLength),
            None if !scope.is_absent() && !scope.is_null() => return Err(Fault::ScopeKind),
            _ => {}
        }
        let list = payload.get("directives");
        if !list.is_array() {
            return Err(Fault::DirectivesKind);
        }
        let room = MAX_DIRECTIVES - self.directives;
        if list.len() > room && (self.mode == Mode::Strict || room == 0) {
            return Err(Fault::Directives);
        }
        let keep = list.len().min(room);
        if self.in_vain + keep > MAX_IN_VAIN {
            return Err(Fault::InVain);
        }
        self.in_vain += keep; // until they turn out to be sound
        let listed = self.listed;
        if let Err(fault) = self.judge(list, keep, scope.str()) {
            self.listed = listed;
            return Err(fault);
        }
        self.in_vain -= keep;
        self.scope = Some(scope.str());
        self.directives += keep;
        Ok(if keep < list.len() { Verdict::Cut(keep) } else { Verdict::Whole })
    }

    /// What the sound claims say of the request's own tokens. A block at the edge of two
    /// claims has tokens of both, so each action speaks for those before it too.
    pub fn tokens(&self) -> &[StoreClaim] {
        self.tokens.get(..self.listed).unwrap_or(&[])
    }

    fn judge(&mut self, list: Value<'a>, keep: usize, scope: Option<&'a str>) -> Result<(), Fault<'a>> {
        self.own.clear();
        for directive in list.elems().take(keep) {
            let (point, tokens) = read(directive)?;
            self.own.add(point);
            if let (Some(tokens), Some(to)) = (tokens, self.tokens.get_mut(self.listed)) {
                *to = tokens;
                self.listed += 1;
            }
        }
        if let Some(rise) = self.own.rise() {
            return Err(Fault::Rises(rise));
        }
        if self.scope.map_or(false, |shared| shared != scope) {
            return Err(Fault::ScopeShared);
        }
        if self.mode == Mode::Strict {
            if let Some(rise) = self.order.rise_with(&self.own) {
                return Err(Fault::Rises(rise));
            }
            self.order.merge(&self.own);
        }
        Ok(())
    }
}

/// What a list is filled with before: zeros take the least fuel.
const NOTHING: StoreClaim = StoreClaim { from: 0, to: 0, priority: 0, zero: 0, ttl_ms: 0 };

/// Reads one directive: where it begins, and what it says of the request's own tokens, if
/// it does and there can be such tokens.
fn read(directive: Value) -> Result<(Point, Option<StoreClaim>), Fault> {
    if !directive.is_map() {
        return Err(Fault::Directive);
    }
    let (mut priority, mut start, mut end) = (Field::Absent, Field::Absent, Field::Absent);
    let (mut duration, mut covers_output) = (Some(0), Some(false));
    for (key, val) in directive.entries() {
        match key.str() {
            Some(key) if is(key, "start") => start = integer(val),
            Some(key) if is(key, "end") => end = integer(val),
            Some(key) if is(key, "priority") => priority = integer(val),
            Some(key) if is(key, "duration") => duration = if val.is_null() { Some(0) } else { milliseconds(val) },
            Some(key) if is(key, "covers_output") => covers_output = val.bool(),
            _ => return Err(Fault::Unknown(directive)),
        }
    }
    // The order of these checks is the order in which faults are reported.
    let priority = match priority {
        Field::Integer(p) if p <= MAX_PRIORITY => p as u32,
        _ => return Err(Fault::Priority),
    };
    let first = match start {
        Field::Integer(s) => s,
        Field::Absent => 0,
        _ => return Err(Fault::Start),
    };
    let to = match end {
        Field::Integer(e) if e > first => e.min(u32::MAX.into()) as u32,
        Field::Absent | Field::Null => u32::MAX,
        _ => return Err(Fault::End),
    };
    let ttl_ms = match duration {
        Some(ms) => ms,
        None => return Err(Fault::Duration),
    };
    match covers_output {
        Some(false) => {
            let tokens = StoreClaim { from: first as u32, to, priority, zero: 0, ttl_ms };
            Ok((Point::at(first, priority), Some(tokens).filter(|_| first < to.into())))
        }
        Some(true) if matches!((start, end), (Field::Absent, Field::Absent)) => Ok((Point::tail(priority), None)),
        Some(true) => Err(Fault::CoversOutputRange),
        None => Err(Fault::CoversOutput),
    }
}

/// A field that should be an integer in [0, 2^64).
#[derive(Clone, Copy)]
enum Field {
    Absent,
    Null,
    Integer(u64),
    Other,
}

fn integer(val: Value) -> Field {
    match val.u64() {
        Some(x) => Field::Integer(x),
        None if val.is_null() => Field::Null,
        None => Field::Other,
    }
}

/// A number of seconds in range as milliseconds, rounded down to at least one, since none
/// stand for ever; 30 days of them are less than 2^32. NaN and number text are in no range.
fn milliseconds(val: Value) -> Option<u64> {
    let seconds = val.u64().map(|d| d as f64).or_else(|| val.f64()).filter(|d| (0.0..=MAX_DURATION).contains(d))?;
    Some(((seconds * 1000.0) as u32).max(1).into())
}

/// What a directive may say.
const FIELDS: [&str; 5] = ["start", "end", "priority", "duration", "covers_output"];

/// How many unknown fields a detail lists at most.
const LISTED: usize = 16;

/// Lists the unknown fields in order, as a list of quoted names.
fn unknown_fields(directive: Value, f: &mut fmt::Formatter) -> fmt::Result {
    f.write_str("unknown directive fields: [")?;
    let unknown = || directive.entries().map(|e| e.0).filter(|k| !k.str().map_or(false, |k| FIELDS.contains(&k)));
    let mut last = None;
    for n in 0.. {
        // The next name in order, among the first of them in the sender's order.
        let next = unknown().take(LISTED).filter(|k| Some(name(*k)) > last).min_by_key(|k| name(*k));
        match next {
            None => break,
            Some(key) => {
                f.write_str(if n > 0 { ", " } else { "" })?;
                match key.str() {
                    Some(s) => write!(f, "{}", Quoted(s))?,
                    None => f.write_str(key.kind())?,
                }
                last = Some(name(key));
            }
        }
    }
    f.write_str(if unknown().nth(LISTED).is_some() { ", ...]" } else { "]" })
}

/// What a key is sorted by. Keys that are no strings count as one.
fn name(key: Value) -> &str {
    key.str().unwrap_or_default()
}
