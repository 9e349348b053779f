//! What a role is shown.

use crate::abi::*;
use crate::value::{run, run_of, text, u32_at, u64_at, Value};
use core::convert::TryInto;

/// One action.
#[derive(Clone, Copy)]
pub struct Action<'a> {
    pub(crate) record: &'a [u8],
    position: usize,
}

impl<'a> Action<'a> {
    #[doc(hidden)]
    pub fn new(record: &'a [u8], position: usize) -> Self {
        Action { record, position }
    }

    /// Its id; absent when the sender gave none.
    pub fn id(self) -> Option<&'a str> {
        run(self.record, OFF_ACTION_ACTION_ID).map(text)
    }

    /// Its type.
    pub fn action_type(self) -> Option<&'a str> {
        run(self.record, OFF_ACTION_ACTION_TYPE).map(text)
    }

    /// Its version; absent when the sender gave none.
    pub fn version(self) -> Option<&'a str> {
        run(self.record, OFF_ACTION_ACTION_VERSION).map(text)
    }

    /// Its payload.
    pub fn payload(self) -> Value<'a> {
        Value::at(self.record, OFF_ACTION_PAYLOAD)
    }

    /// Its payload as it was sent; absent unless `FEATURE_RAW_PAYLOAD` was chosen.
    pub fn raw(self) -> Option<&'a [u8]> {
        run(self.record, OFF_ACTION_RAW)
    }

    /// Its place in the whole envelope.
    pub fn index(self) -> usize {
        u32_at(self.record, OFF_ACTION_INDEX) as usize
    }

    /// Its place among the actions that go to this guest.
    pub fn position(self) -> usize {
        self.position
    }
}

/// All actions of an envelope that go to this guest, in order.
#[derive(Clone, Copy)]
pub struct Envelope<'a> {
    frame: &'a [u8],
}

impl<'a> Envelope<'a> {
    #[doc(hidden)]
    pub fn new(frame: &'a [u8]) -> Self {
        Envelope { frame }
    }

    /// How many actions there are.
    pub fn len(self) -> usize {
        u32_at(self.frame, OFF_ENVELOPE_FRAME_COUNT) as usize
    }

    /// Whether there is no action.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// How many actions the whole envelope has, those of other guests included.
    pub fn total(self) -> usize {
        u32_at(self.frame, OFF_ENVELOPE_FRAME_TOTAL) as usize
    }

    /// The action at a position.
    pub fn action(self, position: usize) -> Option<Action<'a>> {
        if position >= self.len() {
            return None;
        }
        let table = u32_at(self.frame, OFF_ENVELOPE_FRAME_ACTIONS) as usize;
        let off = u32_at(self.frame, table + 4 * position) as usize;
        let size = u32_at(self.frame, off + OFF_ACTION_SIZE) as usize;
        Some(Action { record: self.frame.get(off..off.checked_add(size)?)?, position })
    }

    /// The actions before the one at a position, in order.
    pub fn before(self, position: usize) -> impl Iterator<Item = Action<'a>> {
        (0..position).filter_map(move |i| self.action(i))
    }

    /// The version of the hint protocol.
    pub fn protocol_version(self) -> Option<&'a str> {
        run(self.frame, OFF_ENVELOPE_FRAME_PROTOCOL_VERSION).map(text)
    }

    /// The message id.
    pub fn message_id(self) -> Option<&'a str> {
        run(self.frame, OFF_ENVELOPE_FRAME_MESSAGE_ID).map(text)
    }

    /// The request that the envelope is attached to.
    pub fn request_id(self) -> Option<&'a str> {
        run(self.frame, OFF_ENVELOPE_FRAME_REQUEST_ID).map(text)
    }

    /// Which leg of the request asks: one of the `LEG_` constants.
    pub fn leg(self) -> u32 {
        u32_at(self.frame, OFF_ENVELOPE_FRAME_LEG)
    }

    /// The data-parallel rank that asks.
    pub fn dp_rank(self) -> u32 {
        u32_at(self.frame, OFF_ENVELOPE_FRAME_DP_RANK)
    }

    /// Which retry of the request this is.
    pub fn attempt(self) -> u32 {
        u32_at(self.frame, OFF_ENVELOPE_FRAME_ATTEMPT)
    }

    /// The serving engine that asks.
    pub fn engine(self) -> Option<&'a str> {
        run(self.frame, OFF_ENVELOPE_FRAME_ENGINE).map(text)
    }
}

/// What a parser is to turn into an envelope.
#[derive(Clone, Copy)]
pub struct Document<'a> {
    frame: &'a [u8],
}

impl<'a> Document<'a> {
    #[doc(hidden)]
    pub fn new(frame: &'a [u8]) -> Self {
        Document { frame }
    }

    /// The bytes as they were sent.
    pub fn raw(self) -> &'a [u8] {
        run(self.frame, OFF_PARSE_FRAME_RAW).unwrap_or(&[])
    }

    /// The encoding of the bytes: one of the `FORMAT_` constants.
    pub fn format(self) -> u32 {
        u32_at(self.frame, OFF_PARSE_FRAME_FORMAT)
    }

    /// The bytes as a tree; absent when they are neither JSON nor msgpack.
    pub fn tree(self) -> Value<'a> {
        Value::at(self.frame, OFF_PARSE_FRAME_DOCUMENT)
    }

    /// The request that the document came with.
    pub fn request_id(self) -> Option<&'a str> {
        run(self.frame, OFF_PARSE_FRAME_REQUEST_ID).map(text)
    }

    /// The dialect that the host took the document for.
    pub fn dialect(self) -> Option<&'a str> {
        run(self.frame, OFF_PARSE_FRAME_DIALECT).map(text)
    }
}

/// What a policy knows about a request whose worker was chosen. A field that the
/// router cannot supply is `None`, which is not the same as empty or 0.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    frame: &'a [u8],
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $off:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(self) -> Option<&'a str> {
            run(self.frame, $off).map(text)
        }
    )*};
}

impl<'a> Context<'a> {
    #[doc(hidden)]
    pub fn new(frame: &'a [u8]) -> Self {
        Context { frame }
    }

    fn has(self, bit: u64) -> bool {
        u64_at(self.frame, OFF_CONTEXT_FRAME_PRESENT) & bit != 0
    }

    texts! {
        /// The request.
        request_id = OFF_CONTEXT_FRAME_REQUEST_ID;
        /// Routing partition: the model.
        model = OFF_CONTEXT_FRAME_MODEL;
        /// Routing partition: the group.
        group = OFF_CONTEXT_FRAME_GROUP;
        /// Routing partition: the type of worker.
        worker_type = OFF_CONTEXT_FRAME_WORKER_TYPE;
        /// The tenant.
        tenant = OFF_CONTEXT_FRAME_TENANT;
        /// What keeps block hashes apart.
        namespace = OFF_CONTEXT_FRAME_NAMESPACE;
        /// The session.
        session_id = OFF_CONTEXT_FRAME_SESSION_ID;
        /// The session that this one sprang from.
        parent_session_id = OFF_CONTEXT_FRAME_PARENT_SESSION_ID;
    }

    /// Which retry this is.
    pub fn attempt(self) -> Option<u32> {
        self.has(HAS_ATTEMPT).then(|| u32_at(self.frame, OFF_CONTEXT_FRAME_ATTEMPT))
    }

    /// The leg of a disaggregated request: one of the `LEG_` constants.
    pub fn leg(self) -> u32 {
        u32_at(self.frame, OFF_CONTEXT_FRAME_LEG)
    }

    /// Tokens of the prompt.
    pub fn prompt_tokens(self) -> Option<u64> {
        self.has(HAS_PROMPT_TOKENS).then(|| u64_at(self.frame, OFF_CONTEXT_FRAME_PROMPT_TOKENS))
    }

    /// Tokens that the answer may have.
    pub fn expected_output_tokens(self) -> Option<u64> {
        self.has(HAS_EXPECTED_OUTPUT_TOKENS).then(|| u64_at(self.frame, OFF_CONTEXT_FRAME_EXPECTED_OUTPUT_TOKENS))
    }

    /// Whether the request declares tools.
    pub fn tools_declared(self) -> Option<bool> {
        self.has(HAS_TOOLS_DECLARED).then(|| u32_at(self.frame, OFF_CONTEXT_FRAME_TOOLS_DECLARED) != 0)
    }

    /// Tokens in one block.
    pub fn block_size(self) -> Option<u32> {
        self.has(HAS_BLOCK_SIZE).then(|| u32_at(self.frame, OFF_CONTEXT_FRAME_BLOCK_SIZE))
    }

    /// Whether this is the session's last request.
    pub fn session_final(self) -> Option<bool> {
        self.has(HAS_SESSION_FINAL).then(|| u32_at(self.frame, OFF_CONTEXT_FRAME_SESSION_FINAL) != 0)
    }

    /// What made the session send the request: one of the `TRIGGER_` constants.
    pub fn input_trigger(self) -> u32 {
        u32_at(self.frame, OFF_CONTEXT_FRAME_INPUT_TRIGGER)
    }

    /// What the block hashes are: one of the `HASH_KIND_` constants.
    pub fn hash_kind(self) -> u32 {
        u32_at(self.frame, OFF_CONTEXT_FRAME_HASH_KIND)
    }

    /// The request's block hashes.
    pub fn block_hashes(self) -> Option<&'a [u64]> {
        if !self.has(HAS_BLOCK_HASHES) {
            return None;
        }
        let len = u32_at(self.frame, OFF_CONTEXT_FRAME_BLOCK_HASHES_COUNT);
        let val = u32_at(self.frame, OFF_CONTEXT_FRAME_BLOCK_HASHES) as u64;
        match len {
            0 => Some(&[]),
            _ => Value::new(self.frame, Node { tag: TAG_U64S, ext: 0, zero: 0, len, val }).hashes(),
        }
    }

    /// The worker that was chosen.
    pub fn selected(self) -> Worker<'a> {
        Worker::new(self.frame, OFF_CONTEXT_FRAME_SELECTED)
    }

    /// The workers that could have been chosen.
    pub fn candidates(self) -> Option<impl Iterator<Item = Worker<'a>>> {
        let frame = self.frame;
        let first = u32_at(frame, OFF_CONTEXT_FRAME_CANDIDATES) as usize;
        let count = u32_at(frame, OFF_CONTEXT_FRAME_CANDIDATES_COUNT) as usize;
        self.has(HAS_CANDIDATES).then(|| (0..count).map(move |i| Worker::new(frame, first + i * SIZE_WORKER)))
    }

    /// The envelope that came with the request, as a map.
    pub fn request_hint(self) -> Value<'a> {
        Value::at(self.frame, OFF_CONTEXT_FRAME_REQUEST_HINT)
    }

    /// The envelope that the selection made, as a map.
    pub fn selection_hint(self) -> Value<'a> {
        Value::at(self.frame, OFF_CONTEXT_FRAME_SELECTION_HINT)
    }
}

/// A worker of the fleet.
#[derive(Clone, Copy)]
pub struct Worker<'a> {
    frame: &'a [u8],
    record: &'a [u8; SIZE_WORKER], // of the frame; its reads need no check
}

/// The record of a worker that nothing is told of.
static NOBODY: [u8; SIZE_WORKER] = [0; SIZE_WORKER];

impl<'a> Worker<'a> {
    #[inline]
    pub(crate) fn new(frame: &'a [u8], off: usize) -> Self {
        let record = frame.get(off..).and_then(|b| b.get(..SIZE_WORKER)).and_then(|b| b.try_into().ok()).unwrap_or(&NOBODY);
        Worker { frame, record }
    }

    #[inline]
    fn number(self, bit: u32, off: usize) -> Option<u32> {
        (u32_at(self.record, OFF_WORKER_PRESENT) & bit != 0).then(|| u32_at(self.record, off))
    }

    /// Its id: an integer or a string.
    pub fn id(self) -> Value<'a> {
        Value::of(self.frame, self.record, OFF_WORKER_ID)
    }

    /// Its data-parallel rank.
    pub fn dp_rank(self) -> Option<u32> {
        self.number(WORKER_HAS_DP_RANK, OFF_WORKER_DP_RANK)
    }

    /// Prefix blocks of the request that it holds in GPU memory.
    pub fn matched_gpu(self) -> Option<u32> {
        self.number(WORKER_HAS_GPU, OFF_WORKER_MATCHED_GPU)
    }

    /// Prefix blocks of the request that it holds in host memory.
    pub fn matched_cpu(self) -> Option<u32> {
        self.number(WORKER_HAS_CPU, OFF_WORKER_MATCHED_CPU)
    }

    /// Prefix blocks of the request that it holds on disk.
    pub fn matched_disk(self) -> Option<u32> {
        self.number(WORKER_HAS_DISK, OFF_WORKER_MATCHED_DISK)
    }

    /// Prefix blocks of the request in external storage.
    pub fn matched_external(self) -> Option<u32> {
        self.number(WORKER_HAS_EXTERNAL, OFF_WORKER_MATCHED_EXTERNAL)
    }

    /// aggregated, prefill, decode, ...
    pub fn worker_type(self) -> Option<&'a str> {
        run_of(self.frame, self.record, OFF_WORKER_WORKER_TYPE).map(text)
    }

    /// Where its blocks can be fetched from.
    pub fn source_control_endpoint(self) -> Option<&'a str> {
        run_of(self.frame, self.record, OFF_WORKER_SOURCE_CONTROL_ENDPOINT).map(text)
    }

    /// The action types that it can execute; `None` when it did not tell.
    pub fn capabilities(self) -> Option<impl Iterator<Item = &'a str>> {
        let frame = self.frame;
        let first = u32_at(self.record, OFF_WORKER_CAPABILITIES) as usize;
        let count = self.number(WORKER_HAS_CAPABILITIES, OFF_WORKER_CAPABILITIES_COUNT)? as usize;
        Some((0..count).filter_map(move |i| run(frame, first + i * SIZE_SPAN).map(text)))
    }
}
