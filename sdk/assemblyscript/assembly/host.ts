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
