//! The schema {scope, directives}, as vLLM defines it.

use crate::order::{Order, Place, Rise, MAX_PRIORITY};
use crate::{Mode, Quoted, MAX_DIRECTIVES};
use core::fmt;
use kvrt::Value;

/// 30 days in seconds.
const MAX_DURATION: f64 = 2_592_000.0;

/// What is wrong with a claim. It becomes text only for the action that is judged.
#[derive(Clone, Copy)]
pub enum Fault<'a> {
    ScopeKind,
    ScopeShared,
    DirectivesKind,
    Directives,
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
            Fault::ScopeShared => "kv.retain actions in one envelope must share a scope",
            Fault::DirectivesKind => "directives must be a list",
            Fault::Directives => "at most 128 directives per envelope",
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
    order: Order,
}

impl<'a> Claims<'a> {
    pub fn new(mode: Mode) -> Claims<'a> {
        Claims { mode, scope: None, directives: 0, order: Order::new() }
    }

    /// Judges one claim and takes it in when it is sound.
    pub fn add(&mut self, payload: Value<'a>) -> Result<Verdict, Fault<'a>> {
        let scope = payload.get("scope");
        if !scope.is_absent() && !scope.is_null() && scope.str().is_none() {
            return Err(Fault::ScopeKind);
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

        let mut order = Order::new();
        for (i, directive) in list.elems().take(keep).enumerate() {
            let (place, priority) = read(directive, (self.directives + i) as u32)?;
            order.add(place, priority);
        }
        order.rise().map_or(Ok(()), |r| Err(Fault::Rises(r)))?;
        if self.scope.map_or(false, |shared| shared != scope.str()) {
            return Err(Fault::ScopeShared);
        }
        order.merge(&self.order);
        if self.mode == Mode::Strict {
            order.rise().map_or(Ok(()), |r| Err(Fault::Rises(r)))?;
        }
        self.order = order;
        self.scope = Some(scope.str());
        self.directives += keep;
        Ok(if keep < list.len() { Verdict::Cut(keep) } else { Verdict::Whole })
    }
}

/// Reads one directive: its place and priority.
fn read(directive: Value, order: u32) -> Result<(Place, usize), Fault> {
    if !directive.is_map() {
        return Err(Fault::Directive);
    }
    let absent = Value::ABSENT;
    let (mut start, mut end, mut priority, mut duration, mut covers_output) = (absent, absent, absent, absent, absent);
    for (key, val) in directive.entries() {
        *match field(key) {
            Some(Field::Start) => &mut start,
            Some(Field::End) => &mut end,
            Some(Field::Priority) => &mut priority,
            Some(Field::Duration) => &mut duration,
            Some(Field::CoversOutput) => &mut covers_output,
            None => return Err(Fault::Unknown(directive)),
        } = val;
    }
    let priority = match priority.u64() {
        Some(p) if p <= MAX_PRIORITY as u64 => p as usize,
        _ => return Err(Fault::Priority),
    };
    let first = match start.u64() {
        Some(s) => s,
        None if start.is_absent() => 0,
        None => return Err(Fault::Start),
    };
    match end.u64() {
        Some(e) if e > first => {}
        None if end.is_absent() || end.is_null() => {}
        _ => return Err(Fault::End),
    }
    if !duration.is_absent() && !duration.is_null() {
        // NaN and number text are in no range.
        let seconds = duration.u64().map(|d| d as f64).or_else(|| duration.f64());
        if !seconds.map_or(false, |d| (0.0..=MAX_DURATION).contains(&d)) {
            return Err(Fault::Duration);
        }
    }
    match covers_output.bool() {
        None if !covers_output.is_absent() => Err(Fault::CoversOutput),
        Some(true) if start.is_absent() && end.is_absent() => Ok((Place::tail(order), priority)),
        Some(true) => Err(Fault::CoversOutputRange),
        _ => Ok((Place::at(first, order), priority)),
    }
}

enum Field {
    Start,
    End,
    Priority,
    Duration,
    CoversOutput,
}

fn field(key: Value) -> Option<Field> {
    Some(match key.str()? {
        "start" => Field::Start,
        "end" => Field::End,
        "priority" => Field::Priority,
        "duration" => Field::Duration,
        "covers_output" => Field::CoversOutput,
        _ => return None,
    })
}

/// How many unknown fields a detail lists at most.
const LISTED: usize = 16;

/// Lists the unknown fields in order, as a list of quoted names.
fn unknown_fields(directive: Value, f: &mut fmt::Formatter) -> fmt::Result {
    f.write_str("unknown directive fields: [")?;
    let unknown = || directive.entries().map(|e| e.0).filter(|k| field(*k).is_none());
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
