//! Tests of the SDK itself: a guest with every role, and what its calls answer.

use kvrt::testing::{formulate, handle, host, init, parse, to_json, Fleet, Tree};
use kvrt::{abi::*, reject, Action, Answer, Context, Document, Envelope, Handler, Parser, Policy, Text, Value, Writer};

/// What a call is to do is its payload's key "do".
#[derive(Default)]
struct Guest;

impl Handler for Guest {
    fn handle(&self, action: Action, envelope: Envelope) -> Answer {
        let payload = action.payload();
        let v = payload.get("value");
        match payload.get("do").str() {
            Some("rebuild") => Answer::Write(Writer::rewrite(action, |w| rebuild(w, v))),
            Some("say") => reject!(REASON_INVALID_PAYLOAD, "<{}>", v.str().unwrap_or("no text")),
            Some("place") => reject!(
                REASON_NOT_FOUND,
                "{:?} {:?} {:?} {}/{}/{}/{}",
                action.id(),
                action.action_type(),
                action.version(),
                action.index(),
                action.position(),
                envelope.len(),
                envelope.total()
            ),
            source => {
                kvrt::log(LEVEL_INFO, format_args!("at {}", kvrt::now()));
                kvrt::fetch(source, v.hashes().unwrap_or(&[]), FETCH_FLAG_NO_RETAIN)
            }
        }
    }
}

fn rebuild(w: &mut Writer, v: Value) -> Node {
    let copy = w.copy(v);
    let (f64, text) = (w.f64(0.5), w.str(""));
    let deeper = w.map(&[("f64", f64), ("text", text)]);
    let (hashes, none) = (w.hashes(&[1, 2]), w.hashes(&[]));
    let ints = w.array_with(3, |w, i| w.u64(i as u64));
    let mixed = w.array_with(2, |w, i| if i == 0 { w.null() } else { w.bool(true) });
    w.map(&[("copy", copy), ("deeper", deeper), ("hashes", hashes), ("none", none), ("ints", ints), ("mixed", mixed)])
}

impl Parser for Guest {
    fn parse(&self, document: Document) -> Answer {
        let mut w = Writer::envelope("0.1", document.request_id().unwrap_or_default());
        for (key, val) in document.tree().entries() {
            w.action(Some("x"), key.str(), None, |w| w.copy(val));
        }
        Answer::Write(w)
    }
}

impl Policy for Guest {
    fn formulate(&self, _: Context) -> Answer {
        Answer::Accept
    }
}

kvrt::guest!(Guest: handler, parser, policy);

fn one(payload: &str) -> kvrt::testing::Outcome {
    handle(&Guest, &[&format!(r#"{{"action_id":"a1","action_type":"t","payload":{}}}"#, payload)], 0)
}

#[test]
fn values_are_never_converted() {
    let readers = |json: &str| {
        let tree = Tree::new(json);
        let v = tree.value();
        let s: Vec<String> = vec![
            v.bool().map(|x| format!("bool {}", x)),
            v.u64().map(|x| format!("u64 {}", x)),
            v.negative().map(|x| format!("negative {}", x)),
            v.f64().map(|x| format!("f64 {:?}", x)),
            v.str().map(|x| format!("str {}", x)),
            v.number_text().map(|x| format!("number {}", x)),
            v.hashes().map(|x| format!("hashes {:?}", x)),
            v.is_null().then(|| "null".to_string()),
            v.is_array().then(|| format!("array {}", v.len())),
            v.is_map().then(|| format!("map {}", v.len())),
        ]
        .into_iter()
        .flatten()
        .collect();
        format!("{}: {}", v.kind(), s.join(", "))
    };
    for (json, want) in [
        ("null", "null: null"),
        ("true", "a bool: bool true"),
        ("18446744073709551615", "an integer: u64 18446744073709551615"),
        ("-9223372036854775808", "a negative integer: negative -9223372036854775808"),
        ("1.0", "a float: f64 1.0"),
        ("18446744073709551616", "a number that 64 bits cannot hold: number 18446744073709551616"),
        ("1e400", "a number that 64 bits cannot hold: number 1e400"),
        (r#""5""#, "a string: str 5"),
        ("[]", "an array: array 0"),
        ("[0, 18446744073709551615]", "an array: hashes [0, 18446744073709551615], array 2"),
        ("[0, -1]", "an array: array 2"),
        (r#"{"a": 1}"#, "an object: map 1"),
    ] {
        assert_eq!(readers(json), want);
    }
}

#[test]
fn maps_and_arrays() {
    let tree = Tree::new(r#"{"k": 1, "ke": 2, "a_longer_key": 3, "a_longer_kez": [7, 8], "key": {"deep": [null, "x"]}, "": 6}"#);
    let v = tree.value();
    assert_eq!(v.get("key").get("deep").elem(1).str(), Some("x"));
    assert_eq!(v.get("a_longer_key").u64(), Some(3));
    assert_eq!(v.get("a_longer_kez").elem(1).u64(), Some(8));
    assert_eq!(v.get("").u64(), Some(6));
    assert!(v.get("keys").is_absent() && v.get("key").get("x").get("y").elem(3).is_absent());
    assert!(v.get("a_longer_kez").elem(2).is_absent());
    assert_eq!(v.get("a_longer_kez").elems().filter_map(Value::u64).sum::<u64>(), 15);
    assert_eq!(v.get("key").get("deep").elems().count(), 2);
    assert_eq!(v.entries().map(|(k, _)| k.str().unwrap()).collect::<Vec<_>>().join(","), "k,ke,a_longer_key,a_longer_kez,key,");
    assert_eq!(v.get("k").elems().count() + v.get("k").entries().count(), 0);
}

#[test]
fn broken_offsets_read_as_nothing() {
    // A host's frames are sound; what reads them must not panic on others even so.
    let tree = Tree::new(r#"{"a": [1, 2, 3], "b": [null], "c": "text", "d": {"e": 1}}"#);
    let (base, root) = tree.value().raw();
    for cut in 0..base.len() {
        let frame = [vec![0; 48], base[..cut].to_vec()].concat();
        let document = Document::new(&frame);
        let _ = (document.raw(), document.request_id(), to_json(document.tree()));
        let envelope = Envelope::new(&frame);
        for a in envelope.before(4) {
            let _ = (a.id(), to_json(a.payload()));
        }
    }
    assert_eq!(root.tag, TAG_MAP);
}

#[test]
fn details_are_cut_between_characters() {
    for pad in 0..4 {
        let text = "x".repeat(pad) + &"\u{1f4be}".repeat(300);
        let got = one(&format!(r#"{{"do":"say","value":"{}"}}"#, text)).detail;
        assert_eq!(got.len(), 1 + pad + (511 - pad) / 4 * 4);
        assert!(got.starts_with('<') && !got.ends_with('>'));
    }
    assert_eq!(one(r#"{"do":"say","value":""}"#).detail, "<>");
}

#[test]
fn host_functions() {
    host::reset(host::Record { now: 5, ..Default::default() });
    assert_eq!(one(r#"{"do":"tcp://h:1","value":[5,6]}"#).status, "ACCEPTED");
    assert_eq!(one(r#"{"value":[5]}"#).status, "ACCEPTED");
    let record = host::reset(host::Record { submit_answer: -(REASON_SOURCE_NOT_ALLOWED as i32), ..Default::default() });
    assert_eq!(record.log, ["info: at 5", "info: at 5"]);
    assert_eq!(record.submits, [(Some("tcp://h:1".to_string()), vec![5, 6], 1), (None, vec![5], 1)]);
    let refused = one("{}");
    assert_eq!((refused.status, refused.reason, refused.detail.as_str()), ("REJECTED", REASON_SOURCE_NOT_ALLOWED, ""));
}

#[test]
fn blocks_of_the_store() {
    host::reset(host::Record { request: Some(vec![7, 8]), ..Default::default() });
    let mut room = [0; 3];
    assert_eq!(kvrt::request_hashes(&mut []), Ok(2));
    assert_eq!((kvrt::request_hashes(&mut room), room), (Ok(2), [7, 8, 0]));
    assert!(matches!(kvrt::prefetch("tcp://h:1", &[5, 6]), Answer::Accept));
    assert!(matches!(kvrt::evict(&[5]), Answer::Accept));
    assert!(matches!(kvrt::evict_after(&[]), Answer::Accept));
    let claim = StoreClaim { from: 0, to: u32::MAX, priority: 50, zero: 0, ttl_ms: 1 };
    assert!(matches!(kvrt::retain(&[], &[claim], Some("s")), Answer::Accept));
    assert!(matches!(kvrt::retain(&[5], &[claim, claim], None), Answer::Accept));
    let no = -(REASON_UNAVAILABLE as i32);
    let record = host::reset(host::Record { prefetch_answer: no, store_answer: no.into(), ..Default::default() });
    assert_eq!(record.prefetches, [("tcp://h:1".to_string(), vec![5, 6])]);
    assert_eq!(record.evicts, [("evict", vec![5]), ("evict_after", vec![7, 8])]);
    assert_eq!(record.retains, [(vec![7, 8], vec![claim], Some("s".to_string())), (vec![5], vec![claim, claim], None)]);
    assert!(matches!(kvrt::prefetch("tcp://h:1", &[5]), Answer::Refused(REASON_UNAVAILABLE)));
    assert!(matches!(kvrt::evict(&[5]), Answer::Refused(REASON_UNAVAILABLE)));
    assert!(matches!(kvrt::retain(&[5], &[claim], None), Answer::Refused(REASON_UNAVAILABLE)));
    assert_eq!(kvrt::request_hashes(&mut room), Err(REASON_UNAVAILABLE));
}

#[test]
fn blocks_on_the_device() {
    host::reset(host::Record { on_device: vec![2, 9], request: Some(vec![9]), ..Default::default() });
    let mut room = [7; 3];
    assert_eq!(kvrt::device_residency(&[1, 2], &mut room), Ok(2));
    assert_eq!(room, [RESIDENCY_ABSENT, RESIDENCY_DEVICE, 7]);
    assert_eq!((kvrt::device_residency(&[], &mut room), room[0]), (Ok(1), RESIDENCY_DEVICE));
    assert_eq!((kvrt::device_residency(&[1, 2], &mut room[..1]), room[0]), (Ok(2), RESIDENCY_DEVICE));
    let info = kvrt::device_info().unwrap();
    assert_eq!((info.device, info.block_bytes, info.blocks, info.used), (DEVICE_HOST_MEMORY, 1 << 20, 64, 2));
    host::reset(host::Record { device_answer: -i64::from(REASON_UNAVAILABLE), ..Default::default() });
    assert_eq!((kvrt::device_residency(&[1], &mut room), kvrt::device_info()), (Err(REASON_UNAVAILABLE), Err(REASON_UNAVAILABLE)));
}

#[test]
fn actions_know_their_place() {
    let actions = [r#"{"action_type":"t","payload":{}}"#, r#"{"action_id":"i","action_type":"t","action_version":"","payload":{"do":"place"}}"#];
    assert_eq!(handle(&Guest, &actions, 1).detail, r#"Some("i") Some("t") Some("") 1/1/2/2"#);
}

#[test]
fn rewriting() {
    let got = one(r#"{"do":"rebuild","value":{"a":[1,2],"b":[null,-1,1.5,1e400,"x",[],{}],"":{"c":false}}}"#);
    let want = r#"{"action_id":"a1","action_type":"t","action_version":"","payload":{"copy":{"a":[1,2],"b":[null,-1,1.5,1e400,"x",[],{}],"":{"c":false}},"deeper":{"f64":0.5,"text":""},"hashes":[1,2],"none":[],"ints":[0,1,2],"mixed":[null,true]}}"#;
    assert_eq!(got.body.as_deref(), Some(want));
}

#[test]
fn parsing() {
    let got = parse(&Guest, r#"{"t.1":{"a":1},"t.2":5}"#, Some("r1"));
    let action = |t, p| format!(r#"{{"action_id":"x","action_type":"{}","action_version":"","payload":{}}}"#, t, p);
    let want = format!(r#"{{"protocol_version":"0.1","message_id":"r1","actions":[{},{}]}}"#, action("t.1", r#"{"a":1}"#), action("t.2", "5"));
    assert_eq!(got.body, Some(want));
    assert_eq!(parse(&Guest, "not JSON", None).body.as_deref(), Some(r#"{"protocol_version":"0.1","message_id":"","actions":[]}"#));
    let many: Vec<String> = (0..=Writer::ACTIONS).map(|i| format!(r#""{}":1"#, i)).collect();
    let got = parse(&Guest, &format!("{{{}}}", many.join(",")), None);
    assert_eq!((got.reason, got.detail.as_str()), (REASON_LIMIT_EXCEEDED, "the answer is too large"));
}

#[test]
fn parameters() {
    let refused = |p| init::<Guest>(p, kvrt::no_parameters).err();
    assert_eq!(refused(None), None);
    assert_eq!(refused(Some("null")), None);
    assert_eq!(refused(Some("{}")), None);
    assert_eq!(refused(Some(r#"{"a":1}"#)).as_deref(), Some("this guest takes no parameters"));
    let made = init(Some(r#"{"n":3}"#), |p| p.get("n").u64().ok_or_else(|| Text::new(format_args!("no n"))));
    assert_eq!(made, Ok(3));
}

/// Answers with lists of integers.
struct Lists;

impl Policy for Lists {
    fn formulate(&self, _: Context) -> Answer {
        let mut w = Writer::actions();
        w.action(None, Some("t"), None, |w| {
            let hashes = [0, 9, 10, u64::MAX, 1 << 53];
            let entries = [("ints", w.hashes(&hashes)), ("texts", w.decimals(&hashes)), ("none", w.decimals(&[]))];
            w.map(&entries)
        });
        Answer::Write(w)
    }
}

impl Parser for Lists {
    fn parse(&self, _: Document) -> Answer {
        self.formulate(Context::new(&[0; SIZE_CONTEXT_FRAME]))
    }
}

#[test]
fn lists_of_integers() {
    let want = r#"{"protocol_version":"","message_id":"","actions":[{"action_id":"","action_type":"t","action_version":"","payload":{"ints":[0,9,10,18446744073709551615,9007199254740992],"texts":["0","9","10","18446744073709551615","9007199254740992"],"none":[]}}]}"#;
    assert_eq!(parse(&Lists, "{}", None).body.as_deref(), Some(want));
}

#[test]
fn contexts() {
    let mut frame = vec![0u8; SIZE_CONTEXT_FRAME];
    let mut put = |off: usize, b: &[u8]| {
        frame.resize(frame.len().max(off + b.len()), 0);
        frame[off..off + b.len()].copy_from_slice(b);
    };
    let present = HAS_BLOCK_HASHES | HAS_CANDIDATES | HAS_PROMPT_TOKENS;
    put(OFF_CONTEXT_FRAME_PRESENT, &present.to_le_bytes());
    put(OFF_CONTEXT_FRAME_PROMPT_TOKENS, &7u64.to_le_bytes());
    put(OFF_CONTEXT_FRAME_CANDIDATES, &240u32.to_le_bytes());
    put(OFF_CONTEXT_FRAME_CANDIDATES_COUNT, &1u32.to_le_bytes());
    put(OFF_CONTEXT_FRAME_SESSION_ID, &[0x38, 1, 0, 0, 2, 0, 0, 0]);
    put(240 + OFF_WORKER_ID, &[TAG_U64]);
    put(240 + OFF_WORKER_ID + OFF_NODE_VAL, &9u64.to_le_bytes());
    put(240 + OFF_WORKER_PRESENT, &WORKER_HAS_GPU.to_le_bytes());
    put(240 + OFF_WORKER_MATCHED_GPU, &12u32.to_le_bytes());
    put(0x138, b"s1");
    let c = Context::new(&frame);
    assert_eq!((c.prompt_tokens(), c.expected_output_tokens(), c.block_size(), c.attempt()), (Some(7), None, None, None));
    assert_eq!((c.session_id(), c.parent_session_id(), c.tenant()), (Some("s1"), None, None));
    assert_eq!(c.block_hashes(), Some(&[][..]));
    let workers: Vec<_> = c.candidates().unwrap().collect();
    assert_eq!((workers.len(), workers[0].id().u64(), workers[0].matched_gpu(), workers[0].matched_cpu()), (1, Some(9), Some(12), None));
    assert!(workers[0].capabilities().is_none() && workers[0].worker_type().is_none());
    assert!(c.selected().id().is_absent() && c.request_hint().is_absent());
    assert!(matches!(Guest.formulate(c), Answer::Accept));
}

/// The policy of the README.
#[derive(Default)]
struct Keep;

impl Keep {
    fn actions(&self, c: Context) -> Option<Writer> {
        let blocks = c.lineage(c.session_id()?, c.selected()).ok()?.longest();
        let mut w = Writer::actions();
        w.action(None, Some("kv.retain"), Some("1.0"), |w| {
            let (at, hashes) = (w.str("request_completion"), w.decimals(blocks));
            let entries = [("execute_at", at), ("include_current_request", w.bool(true)), ("block_hashes", hashes), ("priority", w.u64(50)), ("ttl_seconds", w.f64(300.0))];
            w.map(&entries)
        });
        Some(w)
    }
}

impl Policy for Keep {
    fn formulate(&self, c: Context) -> Answer {
        self.actions(c).map_or(Answer::Accept, Answer::Write)
    }
}

#[test]
fn a_policy_and_its_lineage() {
    const CONTEXT: &str = r#"{"request_id":"r1","selected":{"worker_id":7},"session":{"session_id":"s1"}}"#;
    host::reset(host::Record::default());
    assert_eq!(formulate(&Keep, CONTEXT).body, None);
    let fleet = Fleet { paths: vec![("s1".to_string(), 7, None, vec![1, u64::MAX])], ..Default::default() };
    host::reset(host::Record { fleet, ..Default::default() });
    let body = formulate(&Keep, CONTEXT).body.unwrap();
    assert!(body.contains(r#""include_current_request":true,"block_hashes":["1","18446744073709551615"],"priority":50"#), "{}", body);
    assert_eq!(formulate(&Keep, r#"{"request_id":"r1","selected":{"worker_id":7}}"#).body, None);
}

/// Says what it sees of a context.
struct Tell;

impl Policy for Tell {
    fn formulate(&self, c: Context) -> Answer {
        let worker = |w: kvrt::Worker| {
            let caps: Option<Vec<&str>> = w.capabilities().map(|l| l.collect());
            let id = w.id().u64().map_or_else(|| format!("{:?}", w.id().str()), |n| n.to_string());
            format!("{} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}", id, w.dp_rank(), w.worker_type(), w.source_control_endpoint(), caps, w.matched_gpu(), w.matched_cpu(), w.matched_disk(), w.matched_external())
        };
        let list: Option<Vec<String>> = c.candidates().map(|l| l.map(worker).collect());
        reject!(
            REASON_INVALID_PAYLOAD,
            "{:?} {:?} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {:?} {:?} {:?} {} | {} | {:?} | {} {}",
            c.request_id(), c.attempt(), c.leg(), c.model(), c.group(), c.worker_type(), c.tenant(), c.namespace(), c.prompt_tokens(), c.expected_output_tokens(),
            c.tools_declared(), c.block_hashes(), c.hash_kind(), c.block_size(), c.session_id(), c.session_final(), c.input_trigger(),
            worker(c.selected()), list, c.request_hint().get("actions").len(), c.selection_hint().is_absent()
        )
    }
}

#[test]
fn contexts_from_json() {
    let got = formulate(&Tell, r#"{"request_id":"r1","selected":{"worker_id":7}}"#).detail;
    assert_eq!(got, r#"Some("r1") None 0 None None None None None None None None None 0 None None None 0 | 7 None None None None None None None None | None | 0 true"#);
    let got = formulate(
        &Tell,
        r#"{"request_id":"r","attempt":2,"leg":"decode","partition":{"model":"m","group":"g","worker_type":"w"},"tenant":"t","namespace":"","prompt_tokens":5000000000,
        "expected_output_tokens":1,"tools_declared":false,"block_hashes":[1,18446744073709551615],"hash_kind":"sequence","block_size":16,
        "session":{"session_id":"s","session_final":true,"input_trigger":"other"},"selected":{"worker_id":"x","dp_rank":0,"capabilities":["a","b"]},
        "candidates":[{"worker_id":9,"worker_type":"w","source_control_endpoint":"e","capabilities":[],"matched_blocks":{"gpu":1,"cpu":2,"disk":3,"external":4}}],
        "request_hint":{"actions":[{"action_type":"t","payload":{}}]}}"#,
    )
    .detail;
    let want = r#"Some("r") Some(2) 3 Some("m") Some("g") Some("w") Some("t") Some("") Some(5000000000) Some(1) Some(false) Some([1, 18446744073709551615]) 2 Some(16) Some("s") Some(true) 3 | Some("x") Some(0) None None Some(["a", "b"]) None None None None | Some(["9 None Some(\"w\") Some(\"e\") Some([]) Some(1) Some(2) Some(3) Some(4)"]) | 1 true"#;
    assert_eq!(got, want);
}
