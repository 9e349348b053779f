//! The policy natively; policies/cases_test.go runs every rule through the runtime.

use fetch_longest_prefix::Fetch;
use kvrt::testing::{formulate, init};

fn context(target: u32, more: &str) -> String {
    format!(
        r#"{{"request_id":"r1","block_hashes":[11,12,18446744073709551615],"selected":{{"worker_id":7,"matched_blocks":{{"gpu":{}}}}},
        "candidates":[{{"worker_id":"w-10","source_control_endpoint":"tcp://c:1","matched_blocks":{{"cpu":3}}}},
        {{"worker_id":"w-09","source_control_endpoint":"tcp://b:1","matched_blocks":{{"gpu":3}}}}]{}}}"#,
        target, more
    )
}

#[test]
fn the_best_source() {
    let policy = init(None, Fetch::new).unwrap();
    let payload = r#""payload":{"source_control_endpoint":"tcp://b:1","block_hashes":[11,12,18446744073709551615]}}]}"#;
    let got = formulate(&policy, &context(2, "")).body.unwrap();
    assert!(got.ends_with(payload), "{}", got);
    assert_eq!(formulate(&policy, &context(3, "")).body, None);
    let hinted = r#","request_hint":{"actions":[{"action_type":"kv.fetch","payload":{}}]}"#;
    assert_eq!(formulate(&policy, &context(2, hinted)).body, None);
    assert_eq!(formulate(&policy, r#"{"request_id":"r1","selected":{"worker_id":7}}"#).body, None);
}

#[test]
fn parameters() {
    assert_eq!(init(Some(r#"{"min_blocks":0}"#), Fetch::new).err().as_deref(), Some("min_blocks must be an integer in [1, 2^32)"));
    let policy = init(Some(r#"{"tiers":["gpu","disk"],"min_blocks":2}"#), Fetch::new).unwrap();
    assert!(formulate(&policy, &context(1, "")).body.is_some());
    assert_eq!(formulate(&policy, &context(2, "")).body, None);
}
