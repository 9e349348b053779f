//! Writing actions and envelopes: for parsers, policies, and handlers that pass an
//! action on rewritten.

use crate::abi::*;
use crate::digits::decimal;
use crate::frame::Action;
use crate::value::Value;
use crate::Text;

pub use crate::abi::Node;

/// Writes the answer of a parser or policy, or the action that a handler passes on.
///
/// ```
/// # use kvrt::{Answer, Writer};
/// # fn answer() -> Answer {
/// let mut w = Writer::envelope("0.1", "m1");
/// w.action(Some("a1"), Some("kv.fetch"), Some("1.0"), |w| {
///     let source = w.str("tcp://10.0.0.9:23280");
///     let hashes = w.hashes(&[1, 2, 3]);
///     w.map(&[("source_control_endpoint", source), ("block_hashes", hashes)])
/// });
/// Answer::Write(w)
/// # }
/// ```
///
/// Values are written first and then put into the map or array that holds them. What
/// finds no room is remembered, and the answer becomes `limit_exceeded`: there is
/// nothing to check between. The same goes for more than [`Writer::COPIED`] values that
/// are copied: a sender decides how many there are, and the guest's fuel is no more
/// than it has. One writer lives at a time.
pub struct Writer {
    mem: Memory,
    body: usize,   // where the envelope or the lone action begins
    base: usize,   // what the offsets of nodes count from: the open action
    count: usize,
    copied: usize,
    at: [u32; Writer::ACTIONS],
    envelope: bool,
}

impl Writer {
    /// How many actions one envelope may have here.
    pub const ACTIONS: usize = 64;
    /// How many values may be copied into one answer.
    pub const COPIED: usize = 4096;

    fn new(envelope: bool) -> Writer {
        let mut w = Writer { mem: Memory::new(), body: 0, base: 0, count: 0, copied: 0, at: [0; Writer::ACTIONS], envelope };
        w.mem.take(SIZE_ANSWER);
        w.body = w.mem.len();
        w
    }

    /// Starts an envelope.
    pub fn envelope(protocol_version: &str, message_id: &str) -> Writer {
        let mut w = Writer::actions();
        let frame = w.base;
        w.span(frame + OFF_ENVELOPE_FRAME_PROTOCOL_VERSION, Some(protocol_version));
        w.span(frame + OFF_ENVELOPE_FRAME_MESSAGE_ID, Some(message_id));
        w
    }

    /// Starts a policy's actions: the envelope that they come into is the host's.
    pub fn actions() -> Writer {
        let mut w = Writer::new(true);
        let frame = w.mem.take(SIZE_ENVELOPE_FRAME);
        w.mem.put_u32(frame + OFF_ENVELOPE_FRAME_KIND, KIND_ENVELOPE);
        w.base = frame;
        w
    }

    /// Writes the action that a handler passes on in place of `action`: the same ids,
    /// type and version, and the payload that `payload` writes.
    pub fn rewrite(action: Action, payload: impl FnOnce(&mut Writer) -> Node) -> Writer {
        let mut w = Writer::new(false);
        w.action(action.id(), action.action_type(), action.version(), payload);
        w
    }

    /// The action with only the first `keep` elements of the list under a key of its
    /// payload: a copy of the record, however large, with one number changed. The list's
    /// elements must not be integers, which have a form of their own.
    pub fn shorten(action: Action, key: &str, keep: usize) -> Writer {
        let mut w = Writer::new(false);
        let at = w.mem.take(0);
        w.bytes_at(action.record);
        w.mem.put(at + OFF_ACTION_RAW, &[0; SIZE_SPAN]);
        w.mem.put_u32(at + OFF_ACTION_RAW_FORMAT, 0);
        match action.payload().offset_of(key) {
            Some(node) => w.mem.put_u32(at + node + OFF_NODE_LEN, keep as u32),
            None => w.mem.fail(),
        }
        w
    }

    /// Writes one action, with the payload that `payload` writes.
    pub fn action(&mut self, id: Option<&str>, action_type: Option<&str>, version: Option<&str>, payload: impl FnOnce(&mut Writer) -> Node) {
        let rec = self.mem.take(SIZE_ACTION);
        self.base = rec;
        self.span(rec + OFF_ACTION_ACTION_ID, id);
        self.span(rec + OFF_ACTION_ACTION_TYPE, action_type);
        self.span(rec + OFF_ACTION_ACTION_VERSION, version);
        let root = payload(self);
        self.mem.put_node(rec + OFF_ACTION_PAYLOAD, root);
        let size = self.mem.len() - rec;
        self.mem.put_u32(rec + OFF_ACTION_SIZE, size as u32);
        match self.at.get_mut(self.count) {
            Some(at) => *at = (rec - self.body) as u32,
            None => self.mem.fail(),
        }
        self.count += 1;
    }

    fn span(&mut self, field: usize, text: Option<&str>) {
        if let Some(t) = text {
            let off = self.bytes(t.as_bytes());
            self.mem.put_u32(field, off as u32);
            self.mem.put_u32(field + 4, t.len() as u32);
        }
    }

    /// Appends bytes and returns their offset from the base.
    fn bytes(&mut self, b: &[u8]) -> u64 {
        (self.bytes_at(b) - self.base) as u64
    }

    fn bytes_at(&mut self, b: &[u8]) -> usize {
        let at = self.mem.room(b.len().max(1));
        self.mem.put(at, b);
        at
    }

    fn run(&mut self, tag: u8, ext: u8, len: usize, b: &[u8]) -> Node {
        Node { tag, ext, zero: 0, len: len as u32, val: self.bytes(b) }
    }

    /// null.
    pub fn null(&self) -> Node {
        scalar(TAG_NULL, 0)
    }

    /// A bool.
    pub fn bool(&self, x: bool) -> Node {
        scalar(TAG_BOOL, x as u64)
    }

    /// An integer.
    pub fn u64(&self, x: u64) -> Node {
        scalar(TAG_U64, x)
    }

    /// A float.
    pub fn f64(&self, x: f64) -> Node {
        scalar(TAG_F64, x.to_bits())
    }

    /// A string.
    pub fn str(&mut self, s: &str) -> Node {
        self.run(TAG_STRING, 0, s.len(), s.as_bytes())
    }

    /// An array of integers.
    pub fn hashes(&mut self, h: &[u64]) -> Node {
        // SAFETY: integers are bytes; the ABI's are little-endian, as Wasm is and every
        // machine that tests run on.
        let bytes = unsafe { core::slice::from_raw_parts(h.as_ptr().cast::<u8>(), core::mem::size_of_val(h)) };
        let at = self.mem.room(bytes.len());
        self.mem.put(at, bytes);
        Node { tag: if h.is_empty() { TAG_ARRAY } else { TAG_U64S }, ext: 0, zero: 0, len: h.len() as u32, val: (at - self.base) as u64 }
    }

    /// An array of integers as decimal texts.
    pub fn decimals(&mut self, h: &[u64]) -> Node {
        self.array_with(h.len(), |w, i| {
            let (text, zeros) = decimal(h.get(i).copied().unwrap_or_default());
            let digits = text.get(zeros..).unwrap_or_default();
            w.run(TAG_STRING, 0, digits.len(), digits)
        })
    }

    /// A map of values that were written before.
    pub fn map(&mut self, entries: &[(&str, Node)]) -> Node {
        self.map_with(entries.len(), |w, i| match entries.get(i) {
            Some((key, val)) => (w.str(key), *val),
            None => (w.null(), w.null()),
        })
    }

    /// A map of `n` entries, written as `entry` is asked for them.
    pub fn map_with(&mut self, n: usize, mut entry: impl FnMut(&mut Writer, usize) -> (Node, Node)) -> Node {
        let at = self.mem.room(n * SIZE_ENTRY);
        for i in 0..n {
            let (key, val) = entry(self, i);
            self.mem.put_node(at + i * SIZE_ENTRY + OFF_ENTRY_KEY, key);
            self.mem.put_node(at + i * SIZE_ENTRY + OFF_ENTRY_VAL, val);
        }
        Node { tag: TAG_MAP, ext: 0, zero: 0, len: n as u32, val: (at - self.base) as u64 }
    }

    /// An array of `n` elements, written as `elem` is asked for them.
    pub fn array_with(&mut self, n: usize, mut elem: impl FnMut(&mut Writer, usize) -> Node) -> Node {
        let at = self.mem.room(n * SIZE_NODE);
        let mut ints = n > 0;
        for i in 0..n {
            let node = elem(self, i);
            ints &= node.tag == TAG_U64;
            self.mem.put_node(at + i * SIZE_NODE, node);
        }
        if ints {
            // The canonical form of such an array, in the first half of its room.
            for i in 0..n {
                self.mem.shift(at + i * SIZE_NODE + OFF_NODE_VAL, at + i * 8);
            }
        }
        Node { tag: if ints { TAG_U64S } else { TAG_ARRAY }, ext: 0, zero: 0, len: n as u32, val: (at - self.base) as u64 }
    }

    /// A copy of a value with all below it.
    pub fn copy(&mut self, v: Value) -> Node {
        let (base, node) = v.raw();
        self.copied += 1;
        if self.copied > Writer::COPIED {
            self.mem.fail();
        }
        if self.mem.failed {
            return self.null();
        }
        let run = |len: usize| base.get(node.val as usize..).and_then(|b| b.get(..len)).unwrap_or(&[]);
        match node.tag {
            TAG_NUMBER | TAG_STRING | TAG_BYTES | TAG_EXT => self.run(node.tag, node.ext, node.len as usize, run(node.len as usize)),
            TAG_U64S => self.run(TAG_U64S, 0, node.len as usize, run(node.len as usize * 8)),
            TAG_ARRAY => self.array_with(v.len(), |w, i| w.copy(v.elem(i))),
            TAG_MAP => {
                let mut entries = v.entries();
                self.map_with(v.len(), |w, _| match entries.next() {
                    Some((key, val)) => (w.copy(key), w.copy(val)),
                    None => (w.null(), w.null()),
                })
            }
            _ => node,
        }
    }

    /// Completes the answer and returns the record with all it refers to; `None` when
    /// there was no room.
    pub(crate) fn finish(mut self) -> Option<&'static mut [u8]> {
        if self.envelope {
            let table = self.mem.take(self.count * 4);
            for (i, at) in self.at.iter().take(self.count).enumerate() {
                self.mem.put_u32(table + i * 4, *at);
            }
            let size = self.mem.len() - self.body;
            self.mem.put_u32(self.body + OFF_ENVELOPE_FRAME_ACTIONS, (table - self.body) as u32);
            self.mem.put_u32(self.body + OFF_ENVELOPE_FRAME_COUNT, self.count as u32);
            self.mem.put_u32(self.body + OFF_ENVELOPE_FRAME_TOTAL, self.count as u32);
            self.mem.put_u32(self.body + OFF_ENVELOPE_FRAME_SIZE, size as u32);
        }
        let size = self.mem.len() - self.body;
        self.mem.put_u32(OFF_ANSWER_STATUS, STATUS_ACCEPTED);
        self.mem.put_u32(OFF_ANSWER_BODY, self.body as u32);
        self.mem.put_u32(OFF_ANSWER_BODY + 4, size as u32);
        self.mem.into_bytes()
    }

    pub(crate) fn no_room() -> Text {
        Text::new(format_args!("the answer is too large"))
    }
}

fn scalar(tag: u8, val: u64) -> Node {
    Node { tag, ext: 0, zero: 0, len: 0, val }
}

/// What a writer writes to. A write that is out of bounds has failed before.
struct Memory {
    len: usize,
    failed: bool,
    #[cfg(target_arch = "wasm32")]
    base: *mut u8,
    #[cfg(not(target_arch = "wasm32"))]
    words: Vec<u64>,
}

impl Memory {
    fn new() -> Memory {
        Memory {
            len: 0,
            failed: false,
            #[cfg(target_arch = "wasm32")]
            base: crate::guest::heap(),
            #[cfg(not(target_arch = "wasm32"))]
            words: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn fail(&mut self) {
        self.failed = true;
    }

    /// Appends n bytes, 8-byte aligned, and returns where they are. What they hold is left
    /// over, but for the last eight, which are zero. Without room that is the end, and
    /// the writer has failed.
    fn room(&mut self, n: usize) -> usize {
        let at = self.len;
        match at.checked_add(n).and_then(|end| end.checked_add(7)) {
            Some(end) if !self.failed && self.reserve(end & !7) => {
                self.len = end & !7;
                if self.len > at {
                    self.put(self.len - 8, &[0; 8]);
                }
            }
            _ => self.failed = true,
        }
        at
    }

    /// Appends n zero bytes.
    fn take(&mut self, n: usize) -> usize {
        let at = self.room(n);
        if let Some(new) = self.bytes().get_mut(at..) {
            new.fill(0);
        }
        at
    }

    #[cfg(target_arch = "wasm32")]
    fn reserve(&mut self, len: usize) -> bool {
        crate::guest::reserve(self.base as u64 + len as u64)
    }

    #[cfg(target_arch = "wasm32")]
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: reserve made the memory behind the arena usable up to len, and
        // nothing else lies there while the call lasts.
        unsafe { core::slice::from_raw_parts_mut(self.base, self.len) }
    }

    #[cfg(target_arch = "wasm32")]
    fn into_bytes(self) -> Option<&'static mut [u8]> {
        // SAFETY: as for bytes. The host reads it before the next call begins.
        (!self.failed).then(|| unsafe { core::slice::from_raw_parts_mut(self.base, self.len) })
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn reserve(&mut self, len: usize) -> bool {
        self.words.resize((len + 7) / 8, 0);
        len <= 64 << 20
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: words has room for len bytes.
        unsafe { core::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.len) }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn into_bytes(self) -> Option<&'static mut [u8]> {
        let words = Box::leak(self.words.into_boxed_slice()); // a test's, and small
        // SAFETY: words has room for len bytes.
        (!self.failed).then(|| unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), self.len) })
    }

    fn put(&mut self, at: usize, b: &[u8]) {
        if let Some(to) = self.bytes().get_mut(at..at + b.len()) {
            to.copy_from_slice(b);
        }
    }

    fn put_u32(&mut self, at: usize, x: u32) {
        self.put(at, &x.to_le_bytes());
    }

    fn put_node(&mut self, at: usize, n: Node) {
        self.put(at, &(n.tag as u64 | (n.ext as u64) << 8 | (n.len as u64) << 32).to_le_bytes());
        self.put(at + OFF_NODE_VAL, &n.val.to_le_bytes());
    }

    /// Moves the 8 bytes at `from` to `to`.
    fn shift(&mut self, from: usize, to: usize) {
        if from + 8 <= self.len {
            self.bytes().copy_within(from..from + 8, to);
        }
    }
}
