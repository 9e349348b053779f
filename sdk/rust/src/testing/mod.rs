//! A host in one module, so that a guest can be tested natively with `cargo test`.
//!
//! ```
//! use kvrt::{abi::*, reject, Action, Answer, Envelope, Handler};
//! # #[derive(Default)] struct Evict;
//! # impl Handler for Evict {
//! #     fn handle(&self, _: Action, _: Envelope) -> Answer { reject!(REASON_INVALID_PAYLOAD, "no") }
//! # }
//! use kvrt::testing;
//!
//! let action = r#"{"action_type": "kv.evict", "payload": {"block_hashes": []}}"#;
//! let got = testing::handle(&Evict, &[action], 0);
//! assert_eq!((got.status, got.reason), ("REJECTED", REASON_INVALID_PAYLOAD));
//! ```
//!
//! [`cases::run`] runs a guest's case files.

pub mod cases;
mod context;
mod fleet;
pub mod host;
mod json;

use crate::abi::*;
use crate::value::{run, u32_at};
use crate::{Action, Answer, Document, Envelope, Handler, Parser, Text, Value};
pub use context::formulate;
pub use fleet::Fleet;
pub use json::{to_json, Tree};

/// What a role answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// ACCEPTED or REJECTED.
    pub status: &'static str,
    /// One of the `REASON_` constants; 0 when accepted.
    pub reason: u32,
    /// The text for people.
    pub detail: String,
    /// What was written, as JSON: a rewritten action, or an envelope.
    pub body: Option<String>,
}

fn outcome(answer: Answer) -> Outcome {
    let rejected = |reason, detail: &str| Outcome { status: "REJECTED", reason, detail: detail.to_string(), body: None };
    match answer {
        Answer::Accept => Outcome { status: "ACCEPTED", reason: 0, detail: String::new(), body: None },
        Answer::Refused(reason) => rejected(reason, ""),
        Answer::Reject { reason, detail } => rejected(reason, detail.as_str()),
        Answer::Write(w) => match w.finish() {
            None => rejected(REASON_LIMIT_EXCEEDED, crate::Writer::no_room().as_str()),
            Some(record) => Outcome { status: "ACCEPTED", reason: 0, detail: String::new(), body: run(record, OFF_ANSWER_BODY).map(body_json) },
        },
    }
}

/// Prints an action, or an envelope. The two are told apart by their first field: the
/// kind of an envelope is smaller than any action's size.
fn body_json(body: &[u8]) -> String {
    if u32_at(body, 0) == KIND_ENVELOPE {
        let e = Envelope::new(body);
        let actions: Vec<String> = e.before(e.len()).map(action_json).collect();
        let text = |t: Option<&str>| json::quote(t.unwrap_or_default());
        return format!(
            "{{\"protocol_version\":{},\"message_id\":{},\"actions\":[{}]}}",
            text(e.protocol_version()),
            text(e.message_id()),
            actions.join(",")
        );
    }
    let frame = envelope_of(&[body]);
    Envelope::new(json::bytes(&frame)).action(0).map(action_json).unwrap_or_default()
}

fn action_json(a: Action) -> String {
    let text = |t: Option<&str>| json::quote(t.unwrap_or_default());
    format!(
        "{{\"action_id\":{},\"action_type\":{},\"action_version\":{},\"payload\":{}}}",
        text(a.id()),
        text(a.action_type()),
        text(a.version()),
        to_json(a.payload())
    )
}

/// Lays out an envelope frame that lists action records.
fn envelope_of(records: &[&[u8]]) -> Vec<u64> {
    let mut b = json::Bytes::default();
    let frame = b.append(&[0; SIZE_ENVELOPE_FRAME]);
    let table = b.append(&vec![0; records.len() * 4]);
    for (i, r) in records.iter().enumerate() {
        let at = b.append(r);
        b.put_u32(table + i * 4, at as u32);
    }
    b.put_u32(frame + OFF_ENVELOPE_FRAME_KIND, KIND_ENVELOPE);
    b.put_u32(frame + OFF_ENVELOPE_FRAME_SIZE, b.len() as u32);
    b.put_u32(frame + OFF_ENVELOPE_FRAME_ACTIONS, table as u32);
    b.put_u32(frame + OFF_ENVELOPE_FRAME_COUNT, records.len() as u32);
    b.put_u32(frame + OFF_ENVELOPE_FRAME_TOTAL, records.len() as u32);
    b.words()
}

/// Calls a handler for one of several actions, each given as JSON text.
pub fn handle(guest: &impl Handler, actions: &[&str], position: usize) -> Outcome {
    let records: Vec<Vec<u64>> = actions.iter().enumerate().map(|(i, a)| json::action(a, i)).collect();
    let views: Vec<&[u8]> = records.iter().map(|r| json::bytes(r)).collect();
    let frame = envelope_of(&views);
    let envelope = Envelope::new(json::bytes(&frame));
    let action = envelope.action(position).expect("no action at this position");
    outcome(guest.handle(action, envelope))
}

/// Calls a parser for a document given as text. What is not JSON has no tree.
pub fn parse(guest: &impl Parser, document: &str, request_id: Option<&str>) -> Outcome {
    let mut b = json::Bytes::default();
    let frame = b.append(&[0; SIZE_PARSE_FRAME]);
    b.put_u32(frame + OFF_PARSE_FRAME_KIND, KIND_PARSE);
    b.put_u32(frame + OFF_PARSE_FRAME_FORMAT, FORMAT_JSON);
    b.put_text(frame + OFF_PARSE_FRAME_RAW, document);
    if let Some(id) = request_id {
        b.put_text(frame + OFF_PARSE_FRAME_REQUEST_ID, id);
    }
    if let Some(root) = json::parse(&mut b, document) {
        b.put_node(frame + OFF_PARSE_FRAME_DOCUMENT, root);
    }
    b.put_u32(frame + OFF_PARSE_FRAME_SIZE, b.len() as u32);
    let words = b.words();
    outcome(guest.parse(Document::new(json::bytes(&words))))
}

/// Makes a guest of parameters given as JSON text; `None` means that there are none.
pub fn init<T>(parameters: Option<&str>, make: impl FnOnce(Value) -> Result<T, Text>) -> Result<T, String> {
    let tree = parameters.map(Tree::new);
    let value = tree.as_ref().map_or(Value::ABSENT, Tree::value);
    make(value).map_err(|t| t.as_str().to_string())
}
