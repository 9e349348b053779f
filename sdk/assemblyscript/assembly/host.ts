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

/** Brings blocks from the host's block store to the device (capability kvrt_gpu). An empty list stands for the blocks of the request. */
export function prefetchToDevice(hashes: Hashes): Answer {
  const n = abi.kvrt_gpu_prefetch(hashes.at, hashes.length);
  return verdict(n < 0 ? <i32>n : 0);
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
