//! Values: payloads and parameters as trees.

use crate::abi::*;
use core::convert::TryInto;

/// One value of a payload or of parameters, with the memory that it refers to.
///
/// The readers never convert: an integer is not a float, nor a bool an integer, and
/// what is not there is an absent value whose every reader gives `None`.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    base: &'a [u8],
    head: u64, // a node's first half: tag, extension type and length
    val: u64,
}

fn array<const N: usize>(b: &[u8], off: usize) -> Option<[u8; N]> {
    b.get(off..off.checked_add(N)?)?.try_into().ok()
}

#[inline]
pub(crate) fn u32_at(b: &[u8], off: usize) -> u32 {
    array(b, off).map_or(0, u32::from_le_bytes)
}

#[inline]
pub(crate) fn u64_at(b: &[u8], off: usize) -> u64 {
    array(b, off).map_or(0, u64::from_le_bytes)
}

/// Text of a frame. The host vouches for UTF-8 in everything that it calls text.
pub(crate) fn text(b: &[u8]) -> &str {
    if cfg!(target_arch = "wasm32") {
        // SAFETY: the ABI says that strings and spans of text are UTF-8.
        unsafe { core::str::from_utf8_unchecked(b) }
    } else {
        core::str::from_utf8(b).unwrap_or_default()
    }
}

/// The run that a span refers to; `None` when absent.
pub(crate) fn run(base: &[u8], span: usize) -> Option<&[u8]> {
    run_of(base, base, span)
}

/// The run that a span in a record of the base refers to.
#[inline]
pub(crate) fn run_of<'a>(base: &'a [u8], record: &[u8], span: usize) -> Option<&'a [u8]> {
    match (u32_at(record, span) as usize, u32_at(record, span + 4) as usize) {
        (0, _) => None,
        (off, len) => base.get(off..off.checked_add(len)?),
    }
}

impl<'a> Value<'a> {
    /// A value that is not there.
    pub const ABSENT: Value<'static> = Value { base: &[], head: TAG_ABSENT as u64, val: 0 };

    pub(crate) fn new(base: &'a [u8], node: Node) -> Self {
        Value { base, head: node.tag as u64 | (node.ext as u64) << 8 | (node.len as u64) << 32, val: node.val }
    }

    /// Reads the node at `off` of a tree's base.
    pub(crate) fn at(base: &'a [u8], off: usize) -> Self {
        match array::<SIZE_NODE>(base, off) {
            None => Value::ABSENT,
            Some(n) => Value { base, head: u64_at(&n, 0), val: u64_at(&n, 8) },
        }
    }

    /// Reads the node at `off` of a record of the base.
    #[inline]
    pub(crate) fn of(base: &'a [u8], record: &[u8], off: usize) -> Self {
        Value { base, head: u64_at(record, off), val: u64_at(record, off + OFF_NODE_VAL) }
    }

    /// The node itself, and the base that its offset counts from.
    pub fn raw(self) -> (&'a [u8], Node) {
        let node = Node { tag: self.tag(), ext: (self.head >> 8) as u8, zero: 0, len: self.count() as u32, val: self.val };
        (self.base, node)
    }

    /// Bytes, elements or entries.
    fn count(self) -> usize {
        (self.head >> 32) as usize
    }

    /// What the value is: one of the `TAG_` constants.
    pub fn tag(self) -> u8 {
        self.head as u8
    }

    /// Whether the sender left it out.
    pub fn is_absent(self) -> bool {
        self.tag() == TAG_ABSENT
    }

    /// Whether it is null. An absent value is not.
    pub fn is_null(self) -> bool {
        self.tag() == TAG_NULL
    }

    /// Whether it is a map.
    pub fn is_map(self) -> bool {
        self.tag() == TAG_MAP
    }

    /// Whether it is an array, of whatever elements.
    pub fn is_array(self) -> bool {
        matches!(self.tag(), TAG_ARRAY | TAG_U64S)
    }

    /// A bool.
    pub fn bool(self) -> Option<bool> {
        (self.tag() == TAG_BOOL).then(|| self.val != 0)
    }

    /// An integer in [0, 2^64).
    pub fn u64(self) -> Option<u64> {
        (self.tag() == TAG_U64).then(|| self.val)
    }

    /// A negative integer that fits 64 bits.
    pub fn negative(self) -> Option<i64> {
        (self.tag() == TAG_I64).then(|| self.val as i64)
    }

    /// A float. It may be NaN or infinite only where the sender's encoding has such.
    pub fn f64(self) -> Option<f64> {
        (self.tag() == TAG_F64).then(|| f64::from_bits(self.val))
    }

    /// A string.
    pub fn str(self) -> Option<&'a str> {
        (self.tag() == TAG_STRING).then(|| text(self.bytes_of()))
    }

    /// The text of a number that no 64-bit type holds, such as 2^64 or 1e400.
    pub fn number_text(self) -> Option<&'a str> {
        (self.tag() == TAG_NUMBER).then(|| text(self.bytes_of()))
    }

    /// Bytes, which only msgpack has.
    pub fn bytes(self) -> Option<&'a [u8]> {
        (self.tag() == TAG_BYTES).then(|| self.bytes_of())
    }

    /// A msgpack extension: its type and its bytes.
    pub fn ext(self) -> Option<(u8, &'a [u8])> {
        (self.tag() == TAG_EXT).then(|| ((self.head >> 8) as u8, self.bytes_of()))
    }

    fn bytes_of(self) -> &'a [u8] {
        let off = self.val as usize;
        self.base.get(off..off.saturating_add(self.count())).unwrap_or(&[])
    }

    /// A non-empty array of integers in [0, 2^64), as it lies in memory.
    pub fn hashes(self) -> Option<&'a [u64]> {
        if self.tag() != TAG_U64S {
            return None;
        }
        let off = self.val as usize;
        let bytes = self.base.get(off..off.checked_add(self.count().checked_mul(8)?)?)?;
        // SAFETY: any bytes are integers. The ABI aligns the run to 8 bytes.
        let (before, hashes, after) = unsafe { bytes.align_to::<u64>() };
        (before.is_empty() && after.is_empty()).then(|| hashes)
    }

    /// How many elements or entries an array or a map has; 0 for anything else.
    pub fn len(self) -> usize {
        if self.is_array() || self.is_map() {
            self.count()
        } else {
            0
        }
    }

    /// Whether `len` is 0.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Element `i` of an array; absent past its end.
    pub fn elem(self, i: usize) -> Value<'a> {
        if !self.is_array() || i >= self.count() {
            return Value::ABSENT;
        }
        let at = self.val as usize;
        if self.tag() == TAG_U64S {
            return Value { base: &[], head: TAG_U64 as u64, val: u64_at(self.base, at + i * 8) };
        }
        Value::at(self.base, at + i * SIZE_NODE)
    }

    /// The elements of an array.
    pub fn elems(self) -> Elems<'a> {
        Elems { base: self.base, nodes: self.slots(TAG_ARRAY, SIZE_NODE), ints: self.slots(TAG_U64S, 8) }
    }

    /// The entries of a map, in the sender's order.
    pub fn entries(self) -> Entries<'a> {
        Entries { base: self.base, slots: self.slots(TAG_MAP, SIZE_ENTRY) }
    }

    /// The value of a string key in a map; absent when there is no such key, or no map.
    #[inline(never)]
    pub fn get(self, key: &str) -> Value<'a> {
        // Tag and length of the key in one look.
        let head = TAG_STRING as u64 | (key.len() as u64) << 32;
        for entry in self.slots(TAG_MAP, SIZE_ENTRY) {
            if u64_at(entry, 0) == head {
                let at = u64_at(entry, OFF_NODE_VAL) as usize;
                if self.base.get(at..at.saturating_add(key.len())).map_or(false, |k| same(k, key.as_bytes())) {
                    return Value { base: self.base, head: u64_at(entry, OFF_ENTRY_VAL), val: u64_at(entry, OFF_ENTRY_VAL + OFF_NODE_VAL) };
                }
            }
        }
        Value::ABSENT
    }

    /// Where the value of a key lies, from the tree's base.
    pub(crate) fn offset_of(self, key: &str) -> Option<usize> {
        let entry = self.entries().position(|(k, _)| k.str() == Some(key))?;
        Some(self.val as usize + entry * SIZE_ENTRY + OFF_ENTRY_VAL)
    }

    /// The nodes or entries of a container of that tag, each of `size` bytes.
    fn slots(self, tag: u8, size: usize) -> core::slice::ChunksExact<'a, u8> {
        let at = self.val as usize;
        let end = if self.tag() == tag { at.saturating_add(self.count().saturating_mul(size)) } else { at };
        self.base.get(at..end).unwrap_or(&[]).chunks_exact(size)
    }

    /// Names the kind of value for a detail: "a string".
    pub fn kind(self) -> &'static str {
        match self.tag() {
            TAG_ABSENT => "absent",
            TAG_NULL => "null",
            TAG_BOOL => "a bool",
            TAG_U64 => "an integer",
            TAG_I64 => "a negative integer",
            TAG_F64 => "a float",
            TAG_NUMBER => "a number that 64 bits cannot hold",
            TAG_STRING => "a string",
            TAG_BYTES => "bytes",
            TAG_ARRAY | TAG_U64S => "an array",
            TAG_MAP => "an object",
            _ => "an extension",
        }
    }
}

/// Compares text with a literal: `is(mode, "copy")`. Inlined, it takes a step for each
/// eight bytes, where `==` calls a memcmp that goes byte by byte.
#[inline(always)]
pub fn is(text: &str, literal: &str) -> bool {
    same(text.as_bytes(), literal.as_bytes())
}

#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at + 8 <= b.len() {
        if u64_at(a, at) != u64_at(b, at) {
            return false;
        }
        at += 8;
    }
    if at + 4 <= b.len() {
        if u32_at(a, at) != u32_at(b, at) {
            return false;
        }
        at += 4;
    }
    while at < b.len() {
        if a.get(at) != b.get(at) {
            return false;
        }
        at += 1;
    }
    true
}

/// The elements of an array, see [`Value::elems`].
#[derive(Clone)]
pub struct Elems<'a> {
    base: &'a [u8],
    nodes: core::slice::ChunksExact<'a, u8>, // one of the two is empty
    ints: core::slice::ChunksExact<'a, u8>,
}

impl<'a> Iterator for Elems<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if let Some(n) = self.nodes.next() {
            return Some(Value { base: self.base, head: u64_at(n, 0), val: u64_at(n, OFF_NODE_VAL) });
        }
        self.ints.next().map(|n| Value { base: &[], head: TAG_U64 as u64, val: u64_at(n, 0) })
    }
}

/// The entries of a map, see [`Value::entries`].
#[derive(Clone)]
pub struct Entries<'a> {
    base: &'a [u8],
    slots: core::slice::ChunksExact<'a, u8>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (Value<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let e = self.slots.next()?;
        let value = |off| Value { base: self.base, head: u64_at(e, off), val: u64_at(e, off + OFF_NODE_VAL) };
        Some((value(OFF_ENTRY_KEY), value(OFF_ENTRY_VAL)))
    }
}
