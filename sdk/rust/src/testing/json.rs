//! JSON text to trees and back, for tests.

use crate::abi::*;
use crate::Value;

/// Bytes that grow in steps of 8.
#[derive(Default)]
pub struct Bytes(Vec<u8>);

impl Bytes {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn append(&mut self, b: &[u8]) -> usize {
        let at = self.0.len();
        self.0.extend_from_slice(b);
        self.0.resize((self.0.len() + 7) & !7, 0);
        at
    }

    pub fn put(&mut self, at: usize, b: &[u8]) {
        self.0[at..at + b.len()].copy_from_slice(b);
    }

    pub fn put_u32(&mut self, at: usize, x: u32) {
        self.put(at, &x.to_le_bytes());
    }

    pub fn put_text(&mut self, at: usize, s: &str) {
        let off = self.append(if s.is_empty() { b"\0" } else { s.as_bytes() });
        self.put_u32(at, off as u32);
        self.put_u32(at + 4, s.len() as u32);
    }

    pub fn put_node(&mut self, at: usize, n: Node) {
        self.put(at, &node_bytes(n));
    }

    /// The bytes, 8-byte aligned.
    pub fn words(self) -> Vec<u64> {
        self.0.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect()
    }
}

/// The bytes of aligned memory.
pub fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: integers are bytes.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 8) }
}

fn node_bytes(n: Node) -> [u8; SIZE_NODE] {
    let mut b = [0; SIZE_NODE];
    b[0] = n.tag;
    b[1] = n.ext;
    b[4..8].copy_from_slice(&n.len.to_le_bytes());
    b[8..].copy_from_slice(&n.val.to_le_bytes());
    b
}

fn node(tag: u8, len: usize, val: u64) -> Node {
    Node { tag, ext: 0, zero: 0, len: len as u32, val }
}

/// A JSON text as a tree.
pub struct Tree(Vec<u64>);

impl Tree {
    /// Reads JSON text. It panics when the text is not JSON.
    pub fn new(text: &str) -> Tree {
        let mut b = Bytes::default();
        b.append(&[0; SIZE_NODE]);
        let root = parse(&mut b, text).unwrap_or_else(|| panic!("not JSON: {}", text));
        b.put_node(0, root);
        Tree(b.words())
    }

    /// The root.
    pub fn value(&self) -> Value {
        Value::at(bytes(&self.0), 0)
    }
}

/// Appends a JSON text as a tree; `None` when it is not JSON.
pub fn parse(b: &mut Bytes, text: &str) -> Option<Node> {
    let mut p = Parser { b, text: text.as_bytes(), at: 0 };
    let root = p.value()?;
    p.space();
    (p.at == p.text.len()).then(|| root)
}

/// Lays out an action record for an action as JSON text.
pub fn action(text: &str, index: usize) -> Vec<u64> {
    let tree = Tree::new(text);
    let v = tree.value();
    let mut b = Bytes::default();
    let rec = b.append(&[0; SIZE_ACTION]);
    for (key, off) in [("action_id", OFF_ACTION_ACTION_ID), ("action_type", OFF_ACTION_ACTION_TYPE), ("action_version", OFF_ACTION_ACTION_VERSION)] {
        if let Some(s) = v.get(key).str() {
            b.put_text(rec + off, s);
        }
    }
    let payload = v.get("payload");
    if !payload.is_absent() {
        let root = parse(&mut b, &to_json(payload)).expect("printed JSON is JSON");
        b.put_node(rec + OFF_ACTION_PAYLOAD, root);
    }
    b.put_u32(rec + OFF_ACTION_INDEX, index as u32);
    b.put_u32(rec + OFF_ACTION_SIZE, b.len() as u32);
    b.words()
}

struct Parser<'b, 't> {
    b: &'b mut Bytes,
    text: &'t [u8],
    at: usize,
}

impl Parser<'_, '_> {
    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, s: &str) -> bool {
        self.space();
        let is = self.text[self.at..].starts_with(s.as_bytes());
        if is {
            self.at += s.len();
        }
        is
    }

    fn value(&mut self) -> Option<Node> {
        self.space();
        match self.text.get(self.at)? {
            b'{' => self.list("}"),
            b'[' => self.list("]"),
            b'"' => self.string(),
            b'n' => self.take("null").then(|| node(TAG_NULL, 0, 0)),
            b't' => self.take("true").then(|| node(TAG_BOOL, 0, 1)),
            b'f' => self.take("false").then(|| node(TAG_BOOL, 0, 0)),
            _ => self.number(),
        }
    }

    /// An array, or an object as its keys and values in turn.
    fn list(&mut self, close: &str) -> Option<Node> {
        self.at += 1;
        let (map, mut nodes) = (close == "}", Vec::new());
        while !self.take(close) {
            if !nodes.is_empty() && !self.take(",") {
                return None;
            }
            nodes.push(self.value()?);
            if map {
                if !self.take(":") {
                    return None;
                }
                nodes.push(self.value()?);
            }
        }
        let ints = !map && !nodes.is_empty() && nodes.iter().all(|n| n.tag == TAG_U64);
        let at = self.b.len();
        for n in &nodes {
            if ints {
                self.b.append(&n.val.to_le_bytes());
            } else {
                self.b.append(&node_bytes(*n));
            }
        }
        Some(match (map, ints) {
            (true, _) => node(TAG_MAP, nodes.len() / 2, at as u64),
            (_, true) => node(TAG_U64S, nodes.len(), at as u64),
            _ => node(TAG_ARRAY, nodes.len(), at as u64),
        })
    }

    fn string(&mut self) -> Option<Node> {
        let mut out = Vec::new();
        self.at += 1;
        loop {
            let c = *self.text.get(self.at)?;
            self.at += 1;
            match c {
                b'"' => break,
                b'\\' => {
                    let e = *self.text.get(self.at)?;
                    self.at += 1;
                    match e {
                        b'n' => out.push(b'\n'),
                        b't' => out.push(b'\t'),
                        b'r' => out.push(b'\r'),
                        b'b' => out.push(8),
                        b'f' => out.push(12),
                        b'u' => {
                            let mut units = vec![self.unit()?];
                            if (0xd800..0xdc00).contains(&units[0]) && self.take("\\u") {
                                units.push(self.unit()?);
                            }
                            out.extend_from_slice(String::from_utf16(&units).ok()?.as_bytes());
                        }
                        _ => out.push(e),
                    }
                }
                _ => out.push(c),
            }
        }
        let at = self.b.append(if out.is_empty() { b"\0" } else { &out });
        Some(node(TAG_STRING, out.len(), at as u64))
    }

    /// The four hexadecimal digits of an escape.
    fn unit(&mut self) -> Option<u16> {
        let hex = std::str::from_utf8(self.text.get(self.at..self.at + 4)?).ok()?;
        self.at += 4;
        u16::from_str_radix(hex, 16).ok()
    }

    fn number(&mut self) -> Option<Node> {
        let rest = &self.text[self.at..];
        let n = rest.iter().take_while(|c| matches!(c, b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9')).count();
        let s = std::str::from_utf8(&rest[..n]).ok()?;
        self.at += n;
        if s.contains(|c| matches!(c, '.' | 'e' | 'E')) {
            let f: f64 = s.parse().ok()?;
            if f.is_finite() {
                return Some(node(TAG_F64, 0, f.to_bits()));
            }
        } else if let Ok(x) = s.parse::<u64>() {
            return Some(node(TAG_U64, 0, x));
        } else if let Ok(x) = s.parse::<i64>() {
            return Some(node(if x < 0 { TAG_I64 } else { TAG_U64 }, 0, x as u64));
        } else if s.trim_start_matches('-').is_empty() {
            return None;
        }
        let at = self.b.append(s.as_bytes());
        Some(node(TAG_NUMBER, n, at as u64))
    }
}

/// A string as JSON.
pub fn quote(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}

/// A value as JSON without spaces.
pub fn to_json(v: Value) -> String {
    match v.tag() {
        TAG_BOOL => format!("{}", v.bool().unwrap()),
        TAG_U64 => format!("{}", v.u64().unwrap()),
        TAG_I64 => format!("{}", v.negative().unwrap()),
        TAG_F64 => format!("{:?}", v.f64().unwrap()),
        TAG_NUMBER => v.number_text().unwrap().to_string(),
        TAG_STRING => quote(v.str().unwrap()),
        TAG_ARRAY | TAG_U64S => format!("[{}]", v.elems().map(to_json).collect::<Vec<_>>().join(",")),
        TAG_MAP => {
            let entries: Vec<_> = v.entries().map(|(k, v)| format!("{}:{}", to_json(k), to_json(v))).collect();
            format!("{{{}}}", entries.join(","))
        }
        _ => "null".to_string(),
    }
}
