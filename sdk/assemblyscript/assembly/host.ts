// The host functions as an author calls them. What a guest does not use is not imported,
// and needs no grant.

import * as abi from "./abi";
import { Answer } from "./answer";
import { Hashes } from "./value";

/** Writes a line to the guest's log (capability kvrt_log). The host repeats an equal warning once only. */
export function log(level: u32, line: string): void {
  const utf8 = String.UTF8.encode(line);
  abi.kvrt_log_write(level, changetype<usize>(utf8), utf8.byteLength);
}

/** Writes a warning to the guest's log. */
export function warn(line: string): void { log(abi.LEVEL_WARN, line); }

/** Whether a line of this level would be kept. */
export function logs(level: u32): bool { return abi.kvrt_log_enabled(level) != 0; }

/** Wall clock in ns since 1970, the same throughout a call (capability kvrt_clock). */
export function now(): i64 { return abi.kvrt_clock_now(); }

/** Monotonic clock in ns, the same throughout a call (capability kvrt_clock). */
export function monotonic(): i64 { return abi.kvrt_clock_monotonic(); }

function verdict(code: i32): Answer { return code == 0 ? Answer.accept() : new Answer(-code, null); }

/**
 * Hands a hint of this call's request to the host's fetch hint store (capability
 * kvrt_fetch) and answers what the store says. No source means local storage.
 */
export function fetch(source: string | null, hashes: Hashes, flags: u32 = 0): Answer {
  if (!source) return verdict(abi.kvrt_fetch_submit(0, 0, hashes.at, hashes.length, flags));
  const utf8 = String.UTF8.encode(source);
  return verdict(abi.kvrt_fetch_submit(changetype<usize>(utf8), utf8.byteLength, hashes.at, hashes.length, flags));
}

/** Drops the hint of this call's request. May be repeated. */
export function discard(): Answer { return verdict(abi.kvrt_fetch_discard()); }

/** Ends this call's request. May be repeated. */
export function finish(aborted: bool): Answer { return verdict(abi.kvrt_fetch_finish(aborted ? 1 : 0)); }

/** How the hint of a request stands; `refused` says why that is not known, a REASON_ constant. */
export class HintStatus {
  refused: u32 = 0;
  /** A FETCH_STATE_ constant. */
  state: u32 = 0;
  /** Distinct blocks of the live hint. */
  hashes: u32 = 0;
  /** When the first hint came and when it expires, Unix ns. */
  submitted: u64 = 0;
  expires: u64 = 0;
  /** false: local storage only. */
  hasSource: bool = false;
}

/** Tells how the hint of this call's request stood before the call (capability kvrt_fetch). */
export function hint(): HintStatus {
  const s = new HintStatus();
  const buf = new StaticArray<u8>(<i32>abi.SIZE_FETCH_STATUS);
  const at = changetype<usize>(buf);
  const n = abi.kvrt_fetch_status(at, <u32>abi.SIZE_FETCH_STATUS);
  if (n < 0) {
    s.refused = <u32>-n;
    return s;
  }
  s.state = load<u32>(at + abi.OFF_FETCH_STATUS_STATE);
  s.hashes = load<u32>(at + abi.OFF_FETCH_STATUS_HASHES);
  s.submitted = load<u64>(at + abi.OFF_FETCH_STATUS_SUBMITTED_NS);
  s.expires = load<u64>(at + abi.OFF_FETCH_STATUS_EXPIRES_NS);
  s.hasSource = load<u32>(at + abi.OFF_FETCH_STATUS_HAS_SOURCE) != 0;
  return s;
}

/**
 * Has blocks brought from a source into the host's block store, ahead of need and in the
 * background (capability kvrt_fetch). It is no hint of the request.
 */
export function prefetch(source: string, hashes: Hashes): Answer {
  const utf8 = String.UTF8.encode(source);
  return verdict(abi.kvrt_fetch_prefetch(changetype<usize>(utf8), utf8.byteLength, hashes.at, hashes.length, 0));
}

// The answer where a host function counts blocks.
function accepted(n: i64): Answer { return verdict(n < 0 ? <i32>n : 0); }

/**
 * Writes the blocks of this call's request, as its engine described them, if there is room
 * for all, and returns how many there are, or a negated REASON_ constant (capability
 * kvrt_store).
 */
export function requestHashes(room: StaticArray<u64>): i64 {
  const n = abi.kvrt_store_request(changetype<usize>(room), <u32>room.length << 3);
  return n < 0 ? n : n >> 3;
}

/**
 * Writes for each block whether the host's block store has it, as a RESIDENCY_ constant, if
 * there is room for all, and returns how many blocks that are, or a negated REASON_
 * constant (capability kvrt_store). An empty list stands for the blocks of the request.
 */
export function inStore(hashes: Hashes, room: StaticArray<u8>): i64 {
  return abi.kvrt_store_residency(hashes.at, hashes.length, changetype<usize>(room), room.length);
}

/**
 * Evicts blocks of the request's namespace from the host's block store and its device, when
 * the action is accepted (capability kvrt_store). An empty list stands for the blocks of
 * the request.
 */
export function evict(hashes: Hashes): Answer { return accepted(abi.kvrt_store_evict(hashes.at, hashes.length)); }

/** Evicts as `evict` does, when the request of the action has ended. */
export function evictAfter(hashes: Hashes): Answer { return accepted(abi.kvrt_store_evict_after(hashes.at, hashes.length)); }

/** As Claim.to: the end of the list, or of the request. */
export const TO_END: u32 = u32.MAX_VALUE;

/** What a run of blocks, or of the request's tokens, is worth. */
export class Claim {
  constructor(
    readonly from: u32,
    readonly to: u32, // the one after the last, or TO_END
    readonly priority: u32, // at most 100; 0 takes the scope's claim back
    readonly ttlMillis: u64 = 0, // 0: for as long as the store has the block
  ) {}
}

/**
 * Has the host's block store keep blocks (capability kvrt_store). The claims name runs of
 * the hashes, or without hashes of the request's tokens; 128 at most. scope says whose
 * claims these are; null or empty: the request's.
 */
export function retain(hashes: Hashes, scope: string | null, claims: Claim[]): Answer {
  const b = new StaticArray<u8>(claims.length * <i32>abi.SIZE_STORE_CLAIM); // zeroed
  let at = changetype<usize>(b);
  for (let i = 0; i < claims.length; i++, at += abi.SIZE_STORE_CLAIM) {
    const c = claims[i];
    store<u32>(at + abi.OFF_STORE_CLAIM_FROM, c.from);
    store<u32>(at + abi.OFF_STORE_CLAIM_TO, c.to);
    store<u32>(at + abi.OFF_STORE_CLAIM_PRIORITY, c.priority);
    store<u64>(at + abi.OFF_STORE_CLAIM_TTL_MS, c.ttlMillis);
  }
  const from = changetype<usize>(b);
  if (!scope) return accepted(abi.kvrt_store_retain(hashes.at, hashes.length, from, b.length, 0, 0));
  const utf8 = String.UTF8.encode(scope);
  return accepted(abi.kvrt_store_retain(hashes.at, hashes.length, from, b.length, changetype<usize>(utf8), utf8.byteLength));
}

/** Brings blocks from the host's block store to the device (capability kvrt_gpu). An empty list stands for the blocks of the request. */
export function prefetchToDevice(hashes: Hashes): Answer {
  return accepted(abi.kvrt_gpu_prefetch(hashes.at, hashes.length));
}

/**
 * Writes for each block whether it is on the device, as a RESIDENCY_ constant, if there is
 * room for all, and returns how many blocks that are, or a negated REASON_ constant
 * (capability kvrt_gpu). An empty list stands for the blocks of the request.
 */
export function onDevice(hashes: Hashes, room: StaticArray<u8>): i64 {
  return abi.kvrt_gpu_residency(hashes.at, hashes.length, changetype<usize>(room), room.length);
}

/** The device's memory for blocks; `refused` says why there is none, a REASON_ constant. */
export class DeviceMemory {
  refused: u32 = 0;
  device: u32 = 0;
  blockBytes: u64 = 0;
  blocks: u64 = 0;
  used: u64 = 0;
}

/** Describes the device's memory for blocks (capability kvrt_gpu). */
export function device(): DeviceMemory {
  const m = new DeviceMemory();
  const buf = new StaticArray<u8>(<i32>abi.SIZE_DEVICE_INFO);
  const at = changetype<usize>(buf);
  const n = abi.kvrt_gpu_info(at, <u32>abi.SIZE_DEVICE_INFO);
  if (n < 0) {
    m.refused = <u32>-n;
    return m;
  }
  m.device = load<u32>(at + abi.OFF_DEVICE_INFO_DEVICE);
  m.blockBytes = load<u64>(at + abi.OFF_DEVICE_INFO_BLOCK_BYTES);
  m.blocks = load<u64>(at + abi.OFF_DEVICE_INFO_BLOCKS);
  m.used = load<u64>(at + abi.OFF_DEVICE_INFO_USED);
  return m;
}
