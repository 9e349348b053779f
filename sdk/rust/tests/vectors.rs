//! The vectors of the ABI (abi/vectors), read through the SDK: what a reader finds must
//! be what the vector says.

use kvrt::testing::{to_json, Tree};
use kvrt::{abi::*, Action, Context, Document, Envelope, Value, Worker};
use std::path::Path;

fn hex(b: &[u8]) -> String {
    b.iter().map(|x| format!("{:02x}", x)).collect()
}

fn unhex(s: &str) -> Vec<u8> {
    (0..s.len()).step_by(2).map(|i| u8::from_str_radix(&s[i..i + 2], 16).unwrap()).collect()
}

fn quote(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        out += &match c {
            '"' | '\\' => format!("\\{}", c),
            c if c < ' ' => format!("\\u{:04x}", c as u32),
            c => c.to_string(),
        };
    }
    out + "\""
}

fn text(s: Option<&str>) -> String {
    s.map_or("null".to_string(), quote)
}

fn raw(b: Option<&[u8]>) -> String {
    b.map_or("null".to_string(), |b| format!(r#"{{"hex":"{}"}}"#, hex(b)))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A value as the vectors write it.
fn tree(v: Value) -> String {
    let (key, val) = match v.tag() {
        TAG_ABSENT => ("absent", "null".to_string()),
        TAG_NULL => ("null", "null".to_string()),
        TAG_BOOL => ("bool", v.bool().unwrap().to_string()),
        TAG_U64 => ("u64", format!(r#""{}""#, v.u64().unwrap())),
        TAG_I64 => ("i64", format!(r#""{}""#, v.negative().unwrap())),
        TAG_F64 => ("f64", format!(r#""{:016x}""#, v.f64().unwrap().to_bits())),
        TAG_NUMBER => ("number", quote(v.number_text().unwrap())),
        TAG_STRING => ("string", quote(v.str().unwrap())),
        TAG_BYTES => ("bytes", format!(r#""{}""#, hex(v.bytes().unwrap()))),
        TAG_U64S => ("u64s", list(v.hashes().unwrap().iter().map(|x| format!(r#""{}""#, x)))),
        TAG_ARRAY => ("array", list(v.elems().map(tree))),
        TAG_MAP => ("map", list(v.entries().map(|(k, v)| format!("[{},{}]", tree(k), tree(v))))),
        TAG_EXT => ("ext", v.ext().map(|(t, b)| format!(r#"["{}","{}"]"#, t, hex(b))).unwrap()),
        other => panic!("tag {}", other),
    };
    format!(r#"{{"{}":{}}}"#, key, val)
}

fn action(a: Action) -> String {
    format!(
        r#"{{"index":"{}","action_id":{},"action_type":{},"action_version":{},"raw":{},"payload":{}}}"#,
        a.index(),
        text(a.id()),
        text(a.action_type()),
        text(a.version()),
        raw(a.raw()),
        tree(a.payload())
    )
}

fn envelope(e: Envelope) -> String {
    format!(
        r#"{{"protocol_version":{},"message_id":{},"request_id":{},"engine":{},"leg":"{}","dp_rank":"{}","attempt":"{}","total":"{}","actions":{}}}"#,
        text(e.protocol_version()),
        text(e.message_id()),
        text(e.request_id()),
        text(e.engine()),
        e.leg(),
        e.dp_rank(),
        e.attempt(),
        e.total(),
        list(e.before(e.len()).map(action))
    )
}

fn document(d: Document) -> String {
    // Absent and empty bytes are the same to a parser.
    let bytes = if d.raw().is_empty() { String::new() } else { format!(r#""raw":{},"#, raw(Some(d.raw()))) };
    let (id, dialect) = (text(d.request_id()), text(d.dialect()));
    format!(r#"{{"format":"{}",{}"request_id":{},"dialect":{},"document":{}}}"#, d.format(), bytes, id, dialect, tree(d.tree()))
}

fn number(n: Option<u64>) -> String {
    format!(r#""{}""#, n.unwrap_or(0)) // a field that is absent is 0 in a frame
}

fn worker(w: Worker) -> String {
    let small = |n: Option<u32>| number(n.map(u64::from));
    format!(
        r#"{{"id":{},"dp_rank":{},"worker_type":{},"source_control_endpoint":{},"capabilities":{},"matched_gpu":{},"matched_cpu":{},"matched_disk":{},"matched_external":{}}}"#,
        tree(w.id()),
        small(w.dp_rank()),
        text(w.worker_type()),
        text(w.source_control_endpoint()),
        w.capabilities().map_or("null".to_string(), |c| list(c.map(quote))),
        small(w.matched_gpu()),
        small(w.matched_cpu()),
        small(w.matched_disk()),
        small(w.matched_external())
    )
}

fn context(c: Context) -> String {
    let small = |n: Option<u32>| number(n.map(u64::from));
    let flag = |b: Option<bool>| number(b.map(u64::from));
    let texts = [
        ("request_id", c.request_id()),
        ("model", c.model()),
        ("group", c.group()),
        ("worker_type", c.worker_type()),
        ("tenant", c.tenant()),
        ("namespace", c.namespace()),
        ("session_id", c.session_id()),
        ("parent_session_id", c.parent_session_id()),
    ];
    let numbers = [
        ("attempt", small(c.attempt())),
        ("leg", small(Some(c.leg()))),
        ("prompt_tokens", number(c.prompt_tokens())),
        ("expected_output_tokens", number(c.expected_output_tokens())),
        ("tools_declared", flag(c.tools_declared())),
        ("hash_kind", small(Some(c.hash_kind()))),
        ("block_size", small(c.block_size())),
        ("session_final", flag(c.session_final())),
        ("input_trigger", small(Some(c.input_trigger()))),
        ("candidates", c.candidates().map_or("null".to_string(), |w| list(w.map(worker)))),
        ("block_hashes", c.block_hashes().map_or("null".to_string(), |h| list(h.iter().map(|x| format!(r#""{}""#, x))))),
        ("selected", worker(c.selected())),
        ("request_hint", tree(c.request_hint())),
        ("selection_hint", tree(c.selection_hint())),
    ];
    let fields: Vec<_> = texts.iter().map(|(k, v)| (*k, text(*v))).chain(numbers).map(|(k, v)| format!(r#""{}":{}"#, k, v)).collect();
    format!("{{{}}}", fields.join(","))
}

/// Compares objects key by key, wherever the keys stand; what the SDK does not show
/// (`raw_format`, presence bits) is left out of `have`.
fn same(name: &str, have: Value, want: Value) {
    if have.is_map() && have.entries().all(|(k, _)| !want.get(k.str().unwrap()).is_absent()) {
        for (key, val) in have.entries() {
            same(name, val, want.get(key.str().unwrap()));
        }
    } else if have.is_array() && have.len() == want.len() {
        for (h, w) in have.elems().zip(want.elems()) {
            same(name, h, w);
        }
    } else {
        assert_eq!(to_json(have), to_json(want), "{}", name);
    }
}

fn vectors(file: &str, read: impl Fn(&[u8]) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../abi/vectors").join(file);
    let file = Tree::new(&std::fs::read_to_string(&path).unwrap());
    let mut count = 0;
    for v in file.value().get("vectors").elems().filter(|v| !v.get("value").is_absent()) {
        // Aligned to 8 bytes, as the ABI says.
        let bytes = unhex(v.get("hex").str().unwrap());
        let words: Vec<u64> = bytes.chunks(8).map(|c| c.iter().rev().fold(0, |w, b| w << 8 | *b as u64)).collect();
        // SAFETY: words are bytes, and at least as many.
        let aligned = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), bytes.len()) };
        let have = Tree::new(&read(aligned));
        same(v.get("name").str().unwrap(), have.value(), v.get("value"));
        count += 1;
    }
    assert!(count >= 4, "{}: {} vectors", path.display(), count);
}

#[test]
fn trees() {
    vectors("tree.json", |b| {
        // A tree's root is not a field of its own in the SDK: it is the payload of an
        // action whose offsets count from the same base.
        let mut action = vec![0u64; b.len() / 8 + 8];
        let shift = SIZE_ACTION as u64;
        for (i, c) in b.chunks(8).enumerate() {
            action[i + 8] = c.iter().rev().fold(0, |w, b| w << 8 | *b as u64);
        }
        relocate(&mut action, 64, shift);
        (action[6], action[7]) = (action[8], action[9]);
        // SAFETY: words are bytes.
        let bytes = unsafe { std::slice::from_raw_parts(action.as_ptr().cast::<u8>(), action.len() * 8) };
        tree(Action::new(bytes, 0).payload())
    });
}

/// Adds `by` to every offset of the tree whose root is at `at`.
fn relocate(words: &mut [u64], at: usize, by: u64) {
    let (head, val) = (words[at / 8], words[at / 8 + 1]);
    let (tag, count) = (head as u8, (head >> 32) as usize);
    let children = match tag {
        TAG_NUMBER | TAG_STRING | TAG_BYTES | TAG_U64S | TAG_EXT => 0,
        TAG_ARRAY => count,
        TAG_MAP => 2 * count,
        _ => return,
    };
    words[at / 8 + 1] = val + by;
    for i in 0..children {
        relocate(words, (val + by) as usize + i * SIZE_NODE, by);
    }
}

#[test]
fn actions() {
    vectors("action.json", |b| action(Action::new(b, 0)));
}

#[test]
fn envelopes() {
    vectors("envelope.json", |b| envelope(Envelope::new(b)));
}

#[test]
fn documents() {
    vectors("parse.json", |b| document(Document::new(b)));
}

#[test]
fn contexts() {
    vectors("context.json", |b| context(Context::new(b)));
}
