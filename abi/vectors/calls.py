"""Vectors of what crosses besides frames: return values of exports, and calls of host functions."""

import gpu
import layout
import store
from layout import u64

PAGE = 65536
FRAME, AT, SIZE = 4096, 1024, PAGE  # where the frame and the answer lie, and the memory's size
HASHES = [0, 1, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


def runs(*pairs):
    return {"size": SIZE, "runs": [{"at": at, "hex": bytes(data).hex()} for at, data in pairs]}


def rejected(reason, detail=None):
    out = {"status": "2", "reason": str(reason)}
    return out if detail is None else {**out, "detail": detail}


ACCEPTED = {"status": "1", "reason": "0"}


def results():
    out = []

    def v(name, what, export, returns, verdict, answer=b"", at=AT):
        out.append({"name": name, "what": what, "export": export, "frame": {"at": FRAME, "len": 512},
                    "memory": runs(*([(at, answer)] if answer else [])), "returns": str(returns), "verdict": verdict})  # fmt: skip

    def ref(off, length):
        return off << 32 | length

    def answer(**given):
        return layout.answer({"status": "1", "reason": "0", "detail": None, "body": None, "features": "0", **given})

    echo = layout.action({"index": "0", "action_id": None, "action_type": "demo.echo", "action_version": None, "raw": None, "raw_format": "0",
                          "payload": {"map": [[{"string": "text"}, {"string": "hi"}]]}})  # fmt: skip
    envelope = layout.envelope({"protocol_version": "0.1", "message_id": None, "request_id": None, "engine": None, "leg": "0", "dp_rank": "0",
                                "attempt": "0", "total": "0", "actions": []})  # fmt: skip
    yes, no = answer(), answer(status="2", reason="4", detail="no")
    h = "kvrt_handle"
    v("handle-0", "accepted unchanged", h, 0, ACCEPTED)
    v("handle-reason", "rejected with invalid_payload", h, -4, rejected(4))
    v("handle-reason-17", "rejected with unavailable", h, -17, rejected(17))
    v("handle-reason-last", "rejected with unknown_anchor", h, -20, rejected(20))
    for n in -10, -11, -12, -13, -21:
        v(f"handle{n}", "a reason that only the host can give", h, n, rejected(9))
    v("handle-99", "unknown reason", h, -99, rejected(9))
    v("handle-minus-2-31", "unknown reason", h, -(1 << 31), rejected(9))
    v("handle-minus-2-32-4", "unknown reason: not cut to 32 bits", h, -(1 << 32) - 4, rejected(9))
    v("handle-least", "unknown reason: -2^63 has no positive", h, -(1 << 63), rejected(9))
    v("handle-accepted", "", h, ref(AT, len(yes)), ACCEPTED, yes)
    v("handle-rejected", "", h, ref(AT, len(no)), rejected(4, "no"), no)
    rewritten = answer(body={"hex": echo.hex()})
    v("handle-rewritten", "accepted with another action in place of the one that came", h, ref(AT, len(rewritten)),
      {**ACCEPTED, "body": echo.hex()}, rewritten)  # fmt: skip
    broken = answer(body={"hex": (b"\0" * 8 + echo[8:]).hex()})
    v("handle-rewritten-bad", "the action says size 0", h, ref(AT, len(broken)), rejected(9), broken)
    v("handle-bad-answer", "status 0", h, ref(AT, 40), rejected(9), bytes(40))
    v("handle-short", "an answer has at least 40 bytes", h, ref(AT, 39), rejected(9), yes)
    v("handle-0-len", "an answer has at least 40 bytes", h, ref(AT, 0), rejected(9), yes)
    v("handle-unaligned", "an answer is 8-byte aligned", h, ref(AT + 4, 40), rejected(9), yes, AT + 4)
    v("handle-offset-0", "an answer does not lie at 0", h, ref(0, 40), rejected(9), yes, 0)
    v("handle-before-frame", "", h, ref(FRAME - 40, 40), ACCEPTED, yes, FRAME - 40)
    v("handle-into-frame", "an answer does not overlap the frame", h, ref(FRAME - 40, 48), rejected(9), yes + bytes(8), FRAME - 40)
    v("handle-in-frame", "an answer does not overlap the frame", h, ref(FRAME + 8, 40), rejected(9), yes, FRAME + 8)
    v("handle-after-frame", "", h, ref(FRAME + 512, 40), ACCEPTED, yes, FRAME + 512)
    v("handle-at-end", "", h, ref(SIZE - 40, 40), ACCEPTED, yes, SIZE - 40)
    v("handle-past-end", "outside", h, ref(SIZE - 40, 48), rejected(9), yes, SIZE - 40)
    v("handle-outside", "outside", h, ref(SIZE, 40), rejected(9))
    v("handle-offset-high", "outside", h, ref(0x7FFFFFF8, 40), rejected(9))
    v("handle-len-high", "outside, and offset + length wraps in 32 bits", h, ref(AT, 0xFFFFFFFF), rejected(9), yes)

    v("init-0", "no feature chosen", "kvrt_init", 0, ACCEPTED)
    chosen = answer(features=str(1 | 1 << 63))
    v("init-features", "raw_payload is chosen; a bit that was not offered is ignored", "kvrt_init", ref(AT, len(chosen)), {**ACCEPTED, "features": "1"}, chosen)
    refusal = answer(status="2", reason="4", detail="max: want a number")
    v("init-refused", "the load fails", "kvrt_init", ref(AT, len(refusal)), rejected(4, "max: want a number"), refusal)
    v("init-reason", "the load fails", "kvrt_init", -4, rejected(4))

    parsed = answer(body={"hex": envelope.hex()})
    v("parse-envelope", "", "kvrt_parse", ref(AT, len(parsed)), {**ACCEPTED, "body": envelope.hex()}, parsed)
    v("parse-0", "a parser that accepts answers with an envelope", "kvrt_parse", 0, rejected(9))
    v("parse-no-body", "a parser that accepts answers with an envelope", "kvrt_parse", ref(AT, len(yes)), rejected(9), yes)
    v("parse-action", "an action is not an envelope", "kvrt_parse", ref(AT, len(rewritten)), rejected(9), rewritten)
    v("parse-refused", "the document is refused", "kvrt_parse", ref(AT, len(no)), rejected(4, "no"), no)
    v("formulate-envelope", "", "kvrt_formulate", ref(AT, len(parsed)), {**ACCEPTED, "body": envelope.hex()}, parsed)
    v("formulate-0", "no actions for this request", "kvrt_formulate", 0, ACCEPTED)
    v("formulate-no-body", "no actions for this request", "kvrt_formulate", ref(AT, len(yes)), ACCEPTED, yes)

    def arena(name, what, returns, ok):
        out.append({"name": "arena-" + name, "what": what, "export": "kvrt_arena", "asked": 4096, "memory": runs(), "returns": str(returns),
                    "verdict": {"buffer": {"at": returns >> 32, "size": returns & 0xFFFFFFFF}} if ok else {"refused": True}})  # fmt: skip

    arena("exact", "", ref(8192, 4096), True)
    arena("larger", "used whole", ref(8192, SIZE - 8192), True)
    arena("0", "no memory", 0, False)
    arena("negative", "", -7, False)
    arena("smaller", "less than was asked for", ref(8192, 4088), False)
    arena("unaligned", "8-byte aligned", ref(8196, 4096), False)
    arena("offset-0", "a buffer does not lie at 0", 4096, False)
    arena("outside", "", ref(SIZE - 4096, 4104), False)
    arena("far", "", ref(0x7FFFFFF8, 4096), False)
    return out


def calls():
    out = []

    def v(name, what, module, function, args, result, memory=None, after=(), **more):
        out.append({"name": name, "what": what, "module": module, "function": function, "memory": memory or runs(), "args": [str(a) for a in args],
                    **({} if result is None else {"result": str(result)}), "after": list(after), **more})  # fmt: skip

    log, clock, fetch = "kvrt_log", "kvrt_clock", "kvrt_fetch"
    dirty = 0xABCD << 32  # an engine may leave this in the upper half of an i32
    kept = {"host": {"level": "1"}}
    v("log-enabled", "info is kept", log, "enabled", [1], 1, **kept)
    v("log-enabled-not", "debug is not", log, "enabled", [0], 0, **kept)
    v("log-enabled-dirty", "only 32 bits count", log, "enabled", [dirty | 1], 1, **kept)

    def line(name, what, level, text, at=AT, length=None, got=..., upper=0):
        data = text if isinstance(text, bytes) else text.encode()
        length = len(data) if length is None else length
        lines = [{"level": str(level), "text": data.decode() if got is ... else got}] if got is not None else []
        v("log-" + name, what, log, "write", [upper | level, upper | at, upper | length], None, runs((at, data)) if at + len(data) <= SIZE else runs(),
          log=lines, **kept)  # fmt: skip

    line("write", "", 1, "hello, é")
    line("write-error", "", 3, "hello")
    line("write-dirty", "only 32 bits count", 1, "hello", upper=dirty)
    line("write-debug", "below the level that is kept", 0, "hello", got=None)
    line("write-empty", "", 1, "")
    line("write-at-end", "", 1, "hello", at=SIZE - 5)
    line("write-past-end", "nothing is kept of a line outside the memory", 1, "hello", at=SIZE - 4, length=5, got=None)
    line("write-wraps", "offset + length wraps in 32 bits", 1, "hello", at=0xFFFFFFFF, length=2, got=None)
    line("write-utf8", "nothing is kept of a line that is not UTF-8", 1, b"a\xffb", got=None)
    line("write-1024", "", 1, "x" * 1024)
    line("write-1025", "cut to 1,024 bytes", 1, "x" * 1025, got="x" * 1024)
    line("write-cut", "never inside a character", 1, "x" * 1023 + "é", got="x" * 1023)

    clocks = {"host": {"now_ns": "1760000000123456789", "monotonic_ns": "9007199254740993"}}
    v("clock-now", "", clock, "now", [], 1760000000123456789, **clocks)
    v("clock-monotonic", "", clock, "monotonic", [], 9007199254740993, **clocks)

    source = b"tcp://10.0.0.7:18080"
    allow = {"host": {"request_id": "r-1", "allowed_sources": [source.decode()]}}
    hashes = b"".join(u64(h) for h in HASHES)
    memory = runs((AT, source), (2048, hashes))

    def submit(name, what, args, result, source=None, count=0, no_retain=False, memory=memory):
        effects = []
        if result == 0:
            effects = [{"submit": {"source": source, "hashes": [str(h) for h in HASHES[:count]], "no_retain": no_retain}}]
        v("fetch-submit" + name, what, fetch, "submit", args, result, memory, effects=effects, **allow)

    src, text = len(source), source.decode()
    submit("", "", [AT, src, 2048, 6, 0], 0, text, 6)
    submit("-local", "no source: local storage", [0, 0, 2048, 1, 0], 0, None, 1)
    submit("-no-retain", "", [AT, src, 2048, 2, 1], 0, text, 2, True)
    submit("-dirty", "only 32 bits count", [dirty | AT, dirty | src, dirty | 2048, dirty | 6, dirty], 0, text, 6)
    submit("-unaligned", "hashes may lie at any alignment", [AT, src, 2051, 6, 0], 0, text, 6, memory=runs((AT, source), (2051, hashes)))
    twice = {"source": None, "hashes": [str(HASHES[-1])] * 2, "no_retain": False}
    v("fetch-submit-duplicates", "duplicates are kept", fetch, "submit", [0, 0, 2048, 2, 0], 0, runs((2048, hashes[-8:] * 2)),
      effects=[{"submit": twice}], **allow)  # fmt: skip
    submit("-no-hashes", "at least one hash", [AT, src, 2048, 0, 0], -4)
    submit("-empty-source", "an empty source is not no source", [AT, 0, 2048, 1, 0], -4)
    submit("-other-source", "the operator does not allow it", [AT, src - 1, 2048, 1, 0], -5)
    submit("-flags", "unknown flag", [AT, src, 2048, 1, 2], -4)
    submit("-source-outside", "", [SIZE - 4, 5, 2048, 1, 0], -4)
    submit("-source-wraps", "offset + length wraps in 32 bits", [0xFFFFFFFF, 2, 2048, 1, 0], -4)
    submit("-hashes-outside", "", [AT, src, SIZE - 8, 2, 0], -4)
    submit("-hashes-at-end", "", [0, 0, SIZE - 8, 1, 0], 0, None, 1, memory=runs((SIZE - 8, hashes[:8])))
    submit("-count-2-29", "2^29 hashes are 2^32 bytes", [AT, src, 2048, 1 << 29, 0], -4)
    submit("-count-high", "", [AT, src, 2048, 0xFFFFFFFF, 0], -4)

    asked = {"host": {**allow["host"], "exchange": True}}

    def prefetch(name, what, args, result, hashes=(), memory=memory, given=asked):
        effects = [{"fetch_ahead": {"source": text, "hashes": [str(h) for h in hashes]}}] if result == 0 else []
        v("fetch-prefetch" + name, what, fetch, "prefetch", args, result, memory, effects=effects, **given)

    prefetch("", "", [AT, src, 2048, 6, 0], 0, HASHES)
    prefetch("-dirty", "only 32 bits count", [dirty | AT, dirty | src, dirty | 2048, dirty | 6, dirty], 0, HASHES)
    prefetch("-unaligned", "hashes may lie at any alignment", [AT, src, 2051, 6, 0], 0, HASHES, runs((AT, source), (2051, hashes)))
    prefetch("-duplicates", "each block is brought once", [AT, src, 2048, 2, 0], 0, HASHES[-1:], runs((AT, source), (2048, hashes[-8:] * 2)))
    prefetch("-no-id", "a request without an id can have blocks brought too", [AT, src, 2048, 1, 0], 0, HASHES[:1],
             given={"host": {k: x for k, x in asked["host"].items() if k != "request_id"}})  # fmt: skip
    prefetch("-hashes-at-end", "", [AT, src, SIZE - 8, 1, 0], 0, HASHES[:1], runs((AT, source), (SIZE - 8, hashes[:8])))
    prefetch("-none", "no blocks are exchanged", [AT, src, 2048, 1, 0], -17, given=allow)
    prefetch("-no-source", "it needs a source", [0, 0, 2048, 1, 0], -4)
    prefetch("-empty-source", "", [AT, 0, 2048, 1, 0], -4)
    prefetch("-no-hashes", "at least one hash", [AT, src, 2048, 0, 0], -4)
    prefetch("-other-source", "the operator does not allow it", [AT, src - 1, 2048, 1, 0], -5)
    prefetch("-flags", "unknown flag", [AT, src, 2048, 1, 1], -4)
    prefetch("-source-outside", "", [SIZE - 4, 5, 2048, 1, 0], -4)
    prefetch("-source-wraps", "offset + length wraps in 32 bits", [0xFFFFFFFF, 2, 2048, 1, 0], -4)
    prefetch("-hashes-outside", "", [AT, src, SIZE - 8, 2, 0], -4)
    prefetch("-count-2-29", "2^29 hashes are 2^32 bytes", [AT, src, 2048, 1 << 29, 0], -4)
    prefetch("-count-high", "", [AT, src, 2048, 0xFFFFFFFF, 0], -4)

    v("fetch-discard", "", fetch, "discard", [], 0, effects=[{"discard": {}}], **allow)
    v("fetch-finish", "", fetch, "finish", [0], 0, effects=[{"finish": {"aborted": False}}], **allow)
    v("fetch-finish-aborted", "only 32 bits count", fetch, "finish", [dirty | 1], 0, effects=[{"finish": {"aborted": True}}], **allow)
    v("fetch-finish-2", "0 or 1", fetch, "finish", [2], -4, effects=[], **allow)

    status = {"state": "1", "hashes": "3", "submitted_ns": "1760000000123456789", "expires_ns": "1760000600123456789", "has_source": "1"}
    live = {"host": {"request_id": "r-1", "fetch": status}}
    data = layout.fetch_status(status)
    wrote = [{"at": AT, "hex": data.hex(), "record": "FetchStatus", "value": status}]
    none = {k: "0" for k in status}
    v("fetch-status", "", fetch, "status", [AT, 32], 32, after=wrote, **live)
    v("fetch-status-larger", "what lies behind the record is not touched", fetch, "status", [dirty | AT, dirty | 64], 32, runs((AT, b"\xaa" * 64)),
      after=[*wrote, {"at": AT + 32, "hex": "aa" * 32}], **live)  # fmt: skip
    v("fetch-status-small", "too small: nothing is written, the length comes back", fetch, "status", [AT, 31], 32, runs((AT, b"\xaa" * 31)),
      after=[{"at": AT, "hex": "aa" * 31}], **live)  # fmt: skip
    v("fetch-status-ask", "no buffer: the length comes back", fetch, "status", [0, 0], 32, **live)
    v("fetch-status-outside", "", fetch, "status", [SIZE - 31, 32], -4, **live)
    v("fetch-status-wraps", "offset + length wraps in 32 bits", fetch, "status", [0xFFFFFFF0, 32], -4, **live)
    v("fetch-status-none", "no hint of this request", fetch, "status", [AT, 32], 32, runs((AT, b"\xaa" * 32)),
      after=[{"at": AT, "hex": bytes(32).hex(), "record": "FetchStatus", "value": none}], host={"request_id": "r-1", "fetch": none})  # fmt: skip
    lineages(v, dirty)
    workers(v, dirty)
    store.vectors(v, runs, HASHES, dirty)
    gpu.vectors(v, runs, HASHES, dirty)
    return out


def told(node, rank=None):
    """A worker as the vectors' host tells it."""
    return {"worker": node, **({} if rank is None else {"dp_rank": str(rank)})}


SEVEN, MINUS, NAMED = {"u64": "7"}, {"i64": "-1"}, {"string": "worker-b"}
NONE = (1 << 32) - 1  # dp_rank -1


def lineages(v, dirty):
    session = "kvrt_session"

    def path(name, worker, hashes, tenant="t"):
        return {"session": name, "tenant": tenant, **worker, "hashes": [str(h) for h in hashes]}

    trunk = [HASHES[-1], 0, HASHES[2]]
    index = {"hash_kind": "1", "paths": [
        path("s", told(SEVEN, 0), [*trunk, 11, 12]),
        path("s", told(SEVEN, 0), [*trunk, 21]),
        path("s", told(SEVEN), trunk[:1]),
        path("s", told(NAMED, 3), trunk),
        path("other", told(SEVEN, 0), trunk[:2]),
        path("theirs", told(SEVEN, 0), [99], "u"),
    ]}  # fmt: skip
    host = {"host": {"tenant": "t", "lineage": index}}
    off = {"host": {"tenant": "t"}}
    seven, named, minus = (layout.node(3, 0, 7), layout.node(7, 8, 3072), layout.node(4, 0, (1 << 64) - 1))
    memory = runs((AT, b"s"), (AT + 8, b"other"), (AT + 16, b"theirs"), (2048, seven), (2064, named), (2080, minus), (2096, layout.node(1)), (3072, b"worker-b"))
    buf = 8192

    def lineage(paths):
        value = {"hash_kind": "1", "paths": [{"hashes": [str(h) for h in p]} for p in paths], "blocks": str(sum(map(len, paths)))}
        return "Lineage", layout.lineage(value), value

    def write(name, what, function, args, record, at=buf, cap=4096, room=None, given=host, memory=memory):
        kind, data, value = record
        after = [{"at": at, "hex": data.hex(), "record": kind, "value": value}]
        v("session-" + name, what, session, function, [*args, at, cap], len(data), memory, after, **given)

    def fail(name, what, function, args, result, given=host):
        v("session-" + name, what, session, function, args, result, memory, **given)

    s7, s = [AT, 1, 2048, 0], [AT, 1]
    both = lineage([[*trunk, 11, 12], [*trunk, 21]])
    write("lineage", "two branches", "lineage", [*s7, 0, 0], both)
    write("lineage-dirty", "only 32 bits count", "lineage", [dirty | AT, dirty | 1, dirty | 2048, dirty, 5, dirty], both)
    write("lineage-exact", "", "lineage", [*s7, 0, 0], both, cap=len(both[1]))
    write("lineage-at-end", "", "lineage", [*s7, 0, 0], both, at=SIZE - len(both[1]), cap=len(both[1]))
    write("lineage-unaligned", "a buffer lies anywhere", "lineage", [*s7, 0, 0], both, at=buf + 3)
    fail("lineage-small", "nothing is written, the length comes back", "lineage", [*s7, 0, 0, buf, len(both[1]) - 1], len(both[1]))
    fail("lineage-ask", "no buffer: the length comes back", "lineage", [*s7, 0, 0, 0, 0], len(both[1]))
    write("lineage-no-rank", "a rank that nobody told is not rank 0", "lineage", [AT, 1, 2048, NONE, 0, 0], lineage([trunk[:1]]))
    write("lineage-named", "a worker by its text", "lineage", [AT, 1, 2064, 3, 0, 0], lineage([trunk]))
    write("lineage-none", "the session has nothing on this worker", "lineage", [AT, 1, 2064, 0, 0, 0], lineage([]))
    write("lineage-no-worker", "nor on one that nobody knows", "lineage", [AT, 1, 2080, 0, 0, 0], lineage([]))
    write("lineage-anchor", "paths begin at it", "lineage", [*s7, 0, 1], lineage([[*trunk[1:], 11, 12], [*trunk[1:], 21]]))
    write("lineage-anchor-branch", "the path without it is left out", "lineage", [*s7, 11, 1], lineage([[11, 12]]))
    write("lineage-anchor-none", "on no path", "lineage", [*s7, 99, 1], lineage([]))
    fail("lineage-anchor-unknown", "", "lineage", [*s7, 12345, 1, buf, 4096], -20)
    fail("lineage-anchor-first", "an unknown anchor is told before an unknown session", "lineage", [AT, 2, 2048, 0, 12345, 1, buf, 4096], -20)
    fail("lineage-unknown", "", "lineage", [AT, 2, 2048, 0, 0, 0, buf, 4096], -19)
    fail("lineage-tenant", "another tenant's session is unknown", "lineage", [AT + 16, 6, 2048, 0, 0, 0, buf, 4096], -19)
    fail("lineage-off", "", "lineage", [*s7, 12345, 1, buf, 4096], -18, off)
    fail("lineage-flags", "unknown flag", "lineage", [*s7, 0, 2, buf, 4096], -4)
    fail("lineage-worker", "neither an integer nor a string", "lineage", [AT, 1, 2096, 0, 0, 0, buf, 4096], -4)
    fail("lineage-worker-outside", "", "lineage", [AT, 1, SIZE - 15, 0, 0, 0, buf, 4096], -4)
    fail("lineage-session-outside", "", "lineage", [SIZE - 1, 2, 2048, 0, 0, 0, buf, 4096], -4)
    fail("lineage-session-wraps", "offset + length wraps in 32 bits", "lineage", [0xFFFFFFFF, 2, 2048, 0, 0, 0, buf, 4096], -4)
    fail("lineage-outside", "", "lineage", [*s7, 0, 0, SIZE - 8, 16], -4)

    write("exclusive", "the trunk is held by another session up to its second block", "exclusive", s7, lineage([[trunk[2], 11, 12], [21]]))
    write("exclusive-all", "on this worker nobody else has any", "exclusive", [AT, 1, 2064, 3], lineage([trunk]))
    write("exclusive-none", "all of it is on a path of the first session", "exclusive", [AT + 8, 5, 2048, 0], lineage([]))
    fail("exclusive-unknown", "", "exclusive", [AT, 2, 2048, 0, buf, 4096], -19)
    fail("exclusive-off", "", "exclusive", [*s7, buf, 4096], -18, off)
    fail("exclusive-small", "nothing is written, the length comes back", "exclusive", [*s7, buf, 16], 16 + 16 + 32)

    def front(worker, rank, block, depth):
        return {"worker": worker, "dp_rank": str(rank or 0), "present": "0" if rank is None else "1", "hash": str(block), "depth": str(depth)}

    fronts = {"hash_kind": "1", "frontiers": [front(SEVEN, 0, 12, 5), front(SEVEN, 0, 21, 4), front(SEVEN, None, trunk[0], 1), front(NAMED, 3, trunk[2], 3)]}
    record = "Frontiers", layout.frontiers(fronts), fronts
    write("frontiers", "", "frontiers", s, record)
    write("frontiers-dirty", "only 32 bits count", "frontiers", [dirty | AT, dirty | 1], record)
    fail("frontiers-small", "nothing is written, the length comes back", "frontiers", [*s, buf, len(record[1]) - 1], len(record[1]))
    fail("frontiers-unknown", "", "frontiers", [AT, 0, buf, 4096], -19)
    fail("frontiers-tenant", "another tenant's session is unknown", "frontiers", [AT + 16, 6, buf, 4096], -19)
    fail("frontiers-off", "", "frontiers", [*s, buf, 4096], -18, off)
    fail("frontiers-outside", "", "frontiers", [*s, SIZE, 1], -4)

    def block(name, what, h, parent, fronts, children):
        value = {"hash": str(h), "parent": str(parent or 0), "has_parent": str(int(parent is not None)), "hash_kind": "1", "frontiers": str(fronts), "children": str(children)}
        write("node" + name, what, "node", [h], ("BlockNode", layout.block_node(value), value))

    block("", "a branch", trunk[2], trunk[1], 1, 2)
    block("-root", "", trunk[0], None, 1, 1)
    block("-0", "0 is a hash like any other", 0, trunk[0], 1, 1)
    block("-leaf", "", 12, 11, 1, 0)
    fail("node-unknown", "", "node", [12345, buf, 4096], -15)
    fail("node-off", "", "node", [12, buf, 4096], -18, off)
    fail("node-small", "nothing is written, the length comes back", "node", [12, buf, 31], 32)
    fail("node-outside", "", "node", [12, SIZE - 31, 32], -4)


def workers(v, dirty):
    module = "kvrt_worker"
    fleet = [
        {"id": MINUS, "type": "decode", "ranks": [{"source": ""}]},
        {"id": SEVEN, "type": "prefill", "capabilities": ["kv.fetch", "kv.retain"], "ranks": [{"rank": "0", "source": "tcp://a:1"}, {"rank": "1", "source": "tcp://a:2"}]},
        {"id": NAMED, "type": "", "capabilities": [], "ranks": [{"source": "tcp://b:1"}]},
    ]  # fmt: skip
    host = {"host": {"workers": fleet}}
    memory = runs((2048, layout.node(3, 0, 7)), (2064, layout.node(7, 8, 3072)), (2080, layout.node(4, 0, (1 << 64) - 1)), (2096, layout.node(3, 0, 8)),
                  (2112, layout.node(7, 8, SIZE - 4)), (3072, b"worker-b"))  # fmt: skip
    buf = 8192

    def value(node, rank, kind, source, capabilities):
        present = (rank is not None) | 2 * (capabilities is not None)
        return {"id": node, "dp_rank": str(rank or 0), "present": str(present), "worker_type": kind, "source_control_endpoint": source,
                "capabilities": capabilities, "matched_gpu": "0", "matched_cpu": "0", "matched_disk": "0", "matched_external": "0"}  # fmt: skip

    def get(name, what, args, val, at=buf):
        data = layout.one_worker(val)
        v("worker-get" + name, what, module, "get", [*args, at, 512], len(data), memory, [{"at": at, "hex": data.hex(), "record": "Worker", "value": val}], **host)

    def fail(name, what, function, args, result):
        v("worker-" + name, what, module, function, args, result, memory, **host)

    both = ["kv.fetch", "kv.retain"]
    first, second = value(SEVEN, 0, "prefill", "tcp://a:1", both), value(SEVEN, 1, "prefill", "tcp://a:2", both)
    minus, named = value(MINUS, None, "decode", None, None), value(NAMED, None, None, "tcp://b:1", [])
    get("", "", [2048, 1], second)
    get("-dirty", "only 32 bits count", [dirty | 2048, dirty], first)
    get("-no-rank", "what holds for all ranks", [2048, NONE], value(SEVEN, None, "prefill", None, both))
    get("-named", "no capability is listed", [2064, NONE], named)
    get("-negative", "capabilities were not told", [2080, NONE], minus)
    get("-unaligned", "a buffer lies anywhere", [2080, NONE], minus, at=buf + 1)
    fail("get-rank", "there is no such rank", "get", [2048, 2, buf, 512], -15)
    fail("get-rank-0", "a rank that nobody told is not rank 0", "get", [2064, 0, buf, 512], -15)
    fail("get-unknown", "", "get", [2096, NONE, buf, 512], -15)
    fail("get-tag", "neither an integer nor a string", "get", [0, NONE, buf, 512], -4)
    fail("get-text-outside", "", "get", [2112, NONE, buf, 512], -4)
    fail("get-node-outside", "", "get", [SIZE - 8, NONE, buf, 512], -4)
    fail("get-small", "nothing is written, the length comes back", "get", [2080, NONE, buf, 71], len(layout.one_worker(minus)))
    fail("get-outside", "", "get", [2080, NONE, SIZE - 71, 72], -4)
    everybody = {"workers": [minus, first, second, named]}
    data = layout.worker_list(everybody)
    v("worker-list", "by id and rank", module, "list", [buf, 4096], len(data), memory,
      [{"at": buf, "hex": data.hex(), "record": "WorkerList", "value": everybody}], **host)  # fmt: skip
    fail("list-small", "nothing is written, the length comes back", "list", [buf, len(data) - 1], len(data))
    fail("list-outside", "", "list", [SIZE - 15, 16], -4)
    v("worker-list-empty", "no worker is known", module, "list", [buf, 16], 16, after=[
        {"at": buf, "hex": layout.worker_list({"workers": []}).hex(), "record": "WorkerList", "value": {"workers": []}}])  # fmt: skip
