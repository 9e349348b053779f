//! Runs a guest's case files (policies/CASES.md) natively. What only a host can judge
//! (actions that are no mapping, types of other guests, effects) is
//! left to the runner that has one. What is passed on is compared where an envelope
//! is all the guest's, with protocol version 0.1 and message id m1.

use super::{handle, host, init, to_json, Outcome, Tree};
use crate::{Handler, Text, Value};
use std::path::Path;

const REASONS: [&str; 22] = [
    "",
    "unsupported_action_type",
    "unsupported_action_version",
    "malformed_action",
    "invalid_payload",
    "source_not_allowed",
    "conflicting_source",
    "limit_exceeded",
    "superseded",
    "handler_error",
    "handler_trap",
    "handler_out_of_fuel",
    "handler_unavailable",
    "handler_timeout",
    "request_finished",
    "not_found",
    "state_conflict",
    "unavailable",
    "index_off",
    "unknown_session",
    "unknown_anchor",
    "stripped",
];

/// Runs every case of the `.jsonl` files in a folder and returns how many there were.
/// It panics with a list of what differs.
pub fn run<T: Handler>(folder: &Path, action_type: &str, make: impl Fn(Value) -> Result<T, Text>) -> usize {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {}", folder.display(), e))
        .map(|f| f.unwrap().path())
        .filter(|f| f.extension().map_or(false, |e| e == "jsonl"))
        .collect();
    files.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files {
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let tree = Tree::new(line);
            let c = tree.value();
            let before = wrong.len();
            case(c, action_type, &make, &mut wrong);
            for w in &mut wrong[before..] {
                *w = format!("{}: {}: {}", file.display(), c.get("name").str().unwrap_or("no name"), w);
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), count, wrong.join("\n"));
    count
}

/// Notes a difference between what a case expects under a key, where it does, and
/// what came.
fn wants(c: Value, key: &str, have: &str, wrong: &mut Vec<String>) {
    let v = c.get(key);
    let want = v.str().map_or_else(|| to_json(v), str::to_string);
    if !v.is_absent() && want != have {
        wrong.push(format!("{}\n  have {}\n  want {}", key, have, want));
    }
}

fn case<T: Handler>(c: Value, action_type: &str, make: impl Fn(Value) -> Result<T, Text>, wrong: &mut Vec<String>) {
    if !c.get("msgpack").is_absent() {
        return; // needs a decoder
    }
    let answers = c.get("host");
    let code = |key| REASONS.iter().position(|r| answers.get(key).str() == Some(r)).unwrap_or(0) as i64;
    let request = answers.get("request").is_array().then(|| answers.get("request").elems().filter_map(|h| h.u64()).collect());
    host::reset(host::Record { request, store_answer: -code("store"), ..Default::default() });
    let params = c.get("params");
    let text = (!params.is_absent()).then(|| to_json(params));
    let guest = match init(text.as_deref(), make) {
        Ok(g) => {
            wants(c, "init", "", wrong);
            g
        }
        Err(e) if c.get("init").is_absent() => return wrong.push(format!("init: {}", e)),
        Err(e) => return wants(c, "init", &e, wrong),
    };
    let actions = actions(c, action_type);
    let texts: Vec<&str> = actions.iter().map(|a| a.1.as_str()).collect();
    let mut passed_on = Vec::new();
    for (position, (place, text)) in actions.iter().enumerate() {
        let got: Outcome = handle(&guest, &texts, position);
        let want = c.get("results").elem(*place);
        let before = wrong.len();
        wants(want, "status", got.status, wrong);
        wants(want, "reason", REASONS[got.reason as usize], wrong);
        wants(want, "detail", &got.detail, wrong);
        if got.status == "ACCEPTED" {
            passed_on.push(got.body.unwrap_or_else(|| text.clone()));
        }
        for w in &mut wrong[before..] {
            *w = format!("action {}: {}", place, w);
        }
    }
    if actions.len() == c.get("input").get("actions").len() {
        let forward = format!(r#"{{"protocol_version":"0.1","message_id":"m1","actions":[{}]}}"#, passed_on.join(","));
        wants(c, "forward", &forward, wrong);
    }
    let log: Vec<String> = host::reset(host::Record::default()).log.iter().map(|l| super::json::quote(l)).collect();
    wants(c, "log", &format!("[{}]", log.join(",")), wrong);
}

/// The actions of a case that the host would hand to the guest, as JSON text, and
/// where each stands in the envelope.
fn actions(c: Value, action_type: &str) -> Vec<(usize, String)> {
    let payload = c.get("payload");
    if payload.is_map() {
        // A payload alone stands for an envelope of one action.
        let version = c.get("version");
        let version = if version.is_absent() { "\"1.0\"".to_string() } else { to_json(version) };
        let text = format!(r#"{{"action_id":"a1","action_type":"{}","action_version":{},"payload":{}}}"#, action_type, version, to_json(payload));
        return vec![(0, text)];
    }
    let list = c.get("input").get("actions");
    let ours = |a: &(usize, Value)| a.1.get("action_type").str() == Some(action_type) && a.1.get("payload").is_map();
    list.elems().enumerate().filter(ours).map(|(i, a)| (i, to_json(a))).collect()
}
