//! Routing contexts from JSON text, for policies.

use super::json::{self, Bytes, Tree};
use super::{outcome, Outcome};
use crate::abi::*;
use crate::value::Value;
use crate::{Context, Policy};

/// Calls a policy for a routing context, which is given as JSON text in the way that
/// `kvrt formulate` takes it. What it does not know is left out: it does not check, as a
/// host does. The lineage is that of [`super::Fleet`]; events in the context are not
/// looked at.
pub fn formulate(guest: &impl Policy, context: &str) -> Outcome {
    let words = frame(Tree::new(context).value());
    outcome(guest.formulate(Context::new(json::bytes(&words))))
}

/// The place of a text in a list, from 1 on; 0 when it is not there.
fn word(v: Value, words: &[&str]) -> u32 {
    v.str().and_then(|s| words.iter().position(|w| *w == s)).map_or(0, |at| at as u32 + 1)
}

fn text(b: &mut Bytes, off: usize, v: Value) {
    if let Some(s) = v.str() {
        b.put_text(off, s);
    }
}

fn hint(b: &mut Bytes, off: usize, v: Value) {
    if v.is_map() {
        let root = json::parse(b, &json::to_json(v)).expect("JSON");
        b.put_node(off, root);
    }
}

fn worker(b: &mut Bytes, at: usize, v: Value) {
    let id = v.get("worker_id");
    let mut node = id.raw().1;
    if let Some(s) = id.str() {
        node.val = b.append(s.as_bytes()) as u64;
    }
    b.put_node(at + OFF_WORKER_ID, node);
    let tiers = v.get("matched_blocks");
    let mut present = 0;
    for (n, bit, off) in [
        (v.get("dp_rank"), WORKER_HAS_DP_RANK, OFF_WORKER_DP_RANK),
        (tiers.get("gpu"), WORKER_HAS_GPU, OFF_WORKER_MATCHED_GPU),
        (tiers.get("cpu"), WORKER_HAS_CPU, OFF_WORKER_MATCHED_CPU),
        (tiers.get("disk"), WORKER_HAS_DISK, OFF_WORKER_MATCHED_DISK),
        (tiers.get("external"), WORKER_HAS_EXTERNAL, OFF_WORKER_MATCHED_EXTERNAL),
    ] {
        if let Some(n) = n.u64() {
            present |= bit;
            b.put_u32(at + off, n as u32);
        }
    }
    text(b, at + OFF_WORKER_WORKER_TYPE, v.get("worker_type"));
    text(b, at + OFF_WORKER_SOURCE_CONTROL_ENDPOINT, v.get("source_control_endpoint"));
    let list = v.get("capabilities");
    if list.is_array() {
        present |= WORKER_HAS_CAPABILITIES;
        let spans = b.append(&vec![0; list.len() * SIZE_SPAN + 8]);
        for (i, c) in list.elems().enumerate() {
            text(b, spans + i * SIZE_SPAN, c);
        }
        b.put_u32(at + OFF_WORKER_CAPABILITIES, spans as u32);
        b.put_u32(at + OFF_WORKER_CAPABILITIES_COUNT, list.len() as u32);
    }
    b.put_u32(at + OFF_WORKER_PRESENT, present);
}

fn frame(c: Value) -> Vec<u64> {
    let mut b = Bytes::default();
    b.append(&[0; SIZE_CONTEXT_FRAME]);
    b.put_u32(OFF_CONTEXT_FRAME_KIND, KIND_CONTEXT);
    let (session, partition) = (c.get("session"), c.get("partition"));
    for (off, v) in [
        (OFF_CONTEXT_FRAME_REQUEST_ID, c.get("request_id")),
        (OFF_CONTEXT_FRAME_MODEL, partition.get("model")),
        (OFF_CONTEXT_FRAME_GROUP, partition.get("group")),
        (OFF_CONTEXT_FRAME_WORKER_TYPE, partition.get("worker_type")),
        (OFF_CONTEXT_FRAME_TENANT, c.get("tenant")),
        (OFF_CONTEXT_FRAME_NAMESPACE, c.get("namespace")),
        (OFF_CONTEXT_FRAME_SESSION_ID, session.get("session_id")),
        (OFF_CONTEXT_FRAME_PARENT_SESSION_ID, session.get("parent_session_id")),
    ] {
        text(&mut b, off, v);
    }
    b.put_u32(OFF_CONTEXT_FRAME_LEG, word(c.get("leg"), &["aggregated", "prefill", "decode"]));
    b.put_u32(OFF_CONTEXT_FRAME_INPUT_TRIGGER, word(session.get("input_trigger"), &["user_message", "tool_result", "other"]));
    let mut present = 0;
    for (off, v, bit) in [
        (OFF_CONTEXT_FRAME_ATTEMPT, c.get("attempt"), HAS_ATTEMPT),
        (OFF_CONTEXT_FRAME_BLOCK_SIZE, c.get("block_size"), HAS_BLOCK_SIZE),
        (OFF_CONTEXT_FRAME_TOOLS_DECLARED, c.get("tools_declared"), HAS_TOOLS_DECLARED),
        (OFF_CONTEXT_FRAME_SESSION_FINAL, session.get("session_final"), HAS_SESSION_FINAL),
        (OFF_CONTEXT_FRAME_PROMPT_TOKENS, c.get("prompt_tokens"), HAS_PROMPT_TOKENS),
        (OFF_CONTEXT_FRAME_EXPECTED_OUTPUT_TOKENS, c.get("expected_output_tokens"), HAS_EXPECTED_OUTPUT_TOKENS),
    ] {
        if let Some(n) = v.u64().or_else(|| v.bool().map(u64::from)) {
            present |= bit;
            b.put_u32(off, n as u32);
            if bit == HAS_PROMPT_TOKENS || bit == HAS_EXPECTED_OUTPUT_TOKENS {
                b.put(off, &n.to_le_bytes());
            }
        }
    }
    let hashes = c.get("block_hashes");
    if hashes.is_array() {
        present |= HAS_BLOCK_HASHES;
        b.put_u32(OFF_CONTEXT_FRAME_HASH_KIND, word(c.get("hash_kind"), &["engine", "sequence", "local"]));
        let run: Vec<u8> = hashes.hashes().unwrap_or_default().iter().flat_map(|h| h.to_le_bytes()).collect();
        let at = b.append(&run);
        b.put_u32(OFF_CONTEXT_FRAME_BLOCK_HASHES, at as u32);
        b.put_u32(OFF_CONTEXT_FRAME_BLOCK_HASHES_COUNT, hashes.len() as u32);
    }
    worker(&mut b, OFF_CONTEXT_FRAME_SELECTED, c.get("selected"));
    let list = c.get("candidates");
    if list.is_array() {
        present |= HAS_CANDIDATES;
        let at = b.append(&vec![0; list.len() * SIZE_WORKER]);
        for (i, w) in list.elems().enumerate() {
            worker(&mut b, at + i * SIZE_WORKER, w);
        }
        b.put_u32(OFF_CONTEXT_FRAME_CANDIDATES, at as u32);
        b.put_u32(OFF_CONTEXT_FRAME_CANDIDATES_COUNT, list.len() as u32);
    }
    hint(&mut b, OFF_CONTEXT_FRAME_REQUEST_HINT, c.get("request_hint"));
    hint(&mut b, OFF_CONTEXT_FRAME_SELECTION_HINT, c.get("selection_hint"));
    b.put(OFF_CONTEXT_FRAME_PRESENT, &present.to_le_bytes());
    b.put_u32(OFF_CONTEXT_FRAME_SIZE, b.len() as u32);
    b.words()
}
