//! What the host's block store is told of a sound claim.

use kv_retain::Retain;
use kvrt::abi::*;
use kvrt::testing::{handle, host, init};

const END: u32 = u32::MAX;

fn tell(params: &str, payloads: &[&str], position: usize, request: Vec<u64>) -> (String, host::Record) {
    host::reset(host::Record { request: Some(request), ..Default::default() });
    let guest = init(Some(params), Retain::new).unwrap();
    let actions: Vec<String> = payloads.iter().map(|p| format!(r#"{{"action_id":"a","action_type":"kv.retain","action_version":"1.0","payload":{}}}"#, p)).collect();
    let texts: Vec<&str> = actions.iter().map(String::as_str).collect();
    let got = handle(&guest, &texts, position);
    (format!("{} {} {}", got.status, got.reason, got.detail), host::reset(host::Record::default()))
}

fn claim(from: u32, to: u32, priority: u32, ttl_ms: u64) -> StoreClaim {
    StoreClaim { from, to, priority, zero: 0, ttl_ms }
}

#[test]
fn directives_become_claims() {
    for (directives, want) in [
        (r#"{"priority":90}"#, vec![claim(0, END, 90, 0)]),
        (r#"{"priority":90,"start":3,"end":null,"duration":null}"#, vec![claim(3, END, 90, 0)]),
        (r#"{"priority":0,"start":3,"end":4,"duration":600}"#, vec![claim(3, 4, 0, 600_000)]),
        (r#"{"priority":1,"duration":0}"#, vec![claim(0, END, 1, 1)]),
        (r#"{"priority":1,"duration":0.0001}"#, vec![claim(0, END, 1, 1)]),
        (r#"{"priority":1,"duration":1.5}"#, vec![claim(0, END, 1, 1500)]),
        (r#"{"priority":1,"duration":1.5009}"#, vec![claim(0, END, 1, 1500)]),
        (r#"{"priority":1,"duration":2592000}"#, vec![claim(0, END, 1, 2_592_000_000)]),
        (r#"{"priority":1,"duration":2592000.0}"#, vec![claim(0, END, 1, 2_592_000_000)]),
        (r#"{"priority":1,"end":4294967295}"#, vec![claim(0, END, 1, 0)]),
        (r#"{"priority":1,"start":4294967294,"end":18446744073709551615}"#, vec![claim(END - 1, END, 1, 0)]),
        (r#"{"priority":1,"start":4294967295}"#, vec![]),
        (r#"{"priority":1,"start":18446744073709551614,"end":18446744073709551615}"#, vec![]),
        (r#"{"priority":1,"covers_output":true}"#, vec![]),
        (r#"{"priority":9,"end":16},{"priority":1,"covers_output":true},{"priority":5,"start":16}"#, vec![claim(0, 16, 9, 0), claim(16, END, 5, 0)]),
    ] {
        let (got, record) = tell("{}", &[&format!(r#"{{"scope":"s","directives":[{}]}}"#, directives)], 0, vec![7, 8]);
        assert_eq!(got, "ACCEPTED 0 ", "{}", directives);
        let wants: Vec<_> = if want.is_empty() { vec![] } else { vec![(vec![7, 8], want, Some("s".to_string()))] };
        assert_eq!(record.retains, wants, "{}", directives);
    }
}

#[test]
fn scopes() {
    for (scope, want) in [(r#""scope":"","#, Some(String::new())), (r#""scope":null,"#, None), ("", None)] {
        let (_, record) = tell("{}", &[&format!(r#"{{{}"directives":[{{"priority":1}}]}}"#, scope)], 0, vec![7]);
        assert_eq!(record.retains, [(vec![7], vec![claim(0, END, 1, 0)], want)]);
    }
}

/// A later action of an envelope speaks for the sound ones before it, and for no other.
#[test]
fn actions_add_up() {
    let payloads = [
        r#"{"directives":[{"priority":90,"end":24}]}"#,
        r#"{"directives":[{"priority":80,"end":32},{"priority":101}]}"#,
        r#"{"directives":[{"priority":20,"start":24}]}"#,
    ];
    let (got, record) = tell("{}", &payloads, 2, vec![7]);
    assert_eq!(got, "ACCEPTED 0 ");
    assert_eq!(record.retains, [(vec![7], vec![claim(0, 24, 90, 0), claim(24, END, 20, 0)], None)]);
}

#[test]
fn requests_that_are_too_long() {
    let payload = [r#"{"directives":[{"priority":1}]}"#];
    let (got, record) = tell("{}", &payload, 0, vec![1; 16384]);
    assert_eq!((got.as_str(), record.retains.len(), record.log.len()), ("ACCEPTED 0 ", 1, 0));
    let (got, record) = tell("{}", &payload, 0, vec![1; 16385]);
    assert_eq!((got.as_str(), record.retains.len()), ("ACCEPTED 0 ", 0));
    assert_eq!(record.log, ["warn: kv.retain is passed on, and nothing is retained here: the request has more than 16384 blocks"]);
    let (got, record) = tell(r#"{"unable":"reject"}"#, &payload, 0, vec![1; 16385]);
    assert_eq!(got, format!("REJECTED {} the request has more than 16384 blocks", REASON_LIMIT_EXCEEDED));
    assert_eq!((record.retains.len(), record.log.len()), (0, 0));
}
