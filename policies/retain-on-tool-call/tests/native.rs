//! The policy natively; policies/cases_test.go runs every rule through the runtime.

use kvrt::testing::{formulate, init};
use retain_on_tool_call::Retain;

const TOOL: &str = r#"{"request_id":"r1","selected":{"worker_id":7},"tools_declared":true,"session":{"session_id":"s1","session_final":false,"input_trigger":"tool_result"}"#;

#[test]
fn a_tool_call_is_expected() {
    let policy = init(Some(r#"{"ttl_seconds":60}"#), Retain::new).unwrap();
    let got = formulate(&policy, &format!("{}}}", TOOL)).body.unwrap();
    assert!(got.ends_with(r#""payload":{"scope":"s1","directives":[{"start":0,"end":null,"priority":50,"duration":60.0}]}}]}"#), "{}", got);
    assert_eq!(formulate(&policy, &format!("{}}}", TOOL.replace("tool_result", "other"))).body, None);
    assert_eq!(formulate(&policy, &format!("{}}}", TOOL.replace("tools_declared", "x"))).body, None);
}

#[test]
fn the_ttl_of_the_request() {
    let policy = init(Some(r#"{"variant":"blocks"}"#), Retain::new).unwrap();
    assert_eq!(formulate(&policy, &format!("{}}}", TOOL)).body, None);
    let hint = r#","request_hint":{"actions":[{"action_type":"kv.retain","payload":{"ttl_seconds":1.5}}]}}"#;
    let got = formulate(&policy, &format!("{}{}", TOOL, hint)).body.unwrap();
    assert!(got.contains(r#""include_current_request":true,"block_hashes":[],"priority":50,"ttl_seconds":1.5}"#), "{}", got);
    assert_eq!(init(Some(r#"{"ttl_seconds":0}"#), Retain::new).err().as_deref(), Some("ttl_seconds must be a number above 0, at most 2592000"));
}
