"""Vectors of kvrt_store: calls, and the effects that they leave."""

import layout
import residency
from layout import u64
from residency import AT as at
from residency import BUF as buf
from residency import SIZE, after

TO_END = (1 << 32) - 1
DAY30 = 30 * 24 * 3600 * 1000


def values(start, end, priority, ttl_ms=0):
    return {"from": str(start), "to": str(end), "priority": str(priority), "ttl_ms": str(ttl_ms)}


def claim(*args):
    return layout.store_claim(values(*args))


def vectors(v, runs, hashes, dirty):
    module = "kvrt_store"
    here, filling = hashes[:4], hashes[4]  # and the last one is nowhere
    store = {"blocks": [str(h) for h in here], "filling": [str(filling)]}
    described = {**store, "block_size": "16", "request": [str(h) for h in hashes]}
    host, asked, without = ({"host": {"request_id": "r-1", **({} if s is None else {"store": s})}} for s in (store, described, None))
    data = b"".join(u64(h) for h in hashes)
    memory = runs((at, data))
    n = len(hashes)
    tiers = bytes([2, 2, 2, 2, 1, 0])

    residency.vectors(v, module, "store", "no block store", runs, data, tiers, dirty, host, asked, without)

    def request(name, what, args, result, wrote=(), given=asked):
        v("store-request" + name, what, module, "request", args, result, memory, wrote, **given)

    request("", "", [buf, 8 * n], 8 * n, after(data))
    request("-dirty", "only 32 bits count", [dirty | buf, dirty | 8 * n], 8 * n, after(data))
    request("-unaligned", "a buffer lies anywhere", [buf + 1, 8 * n], 8 * n, after(data, buf + 1))
    request("-small", "nothing is written, the length comes back", [buf, 8 * n - 1], 8 * n)
    request("-ask", "no buffer: the length comes back", [0, 0], 8 * n)
    request("-unknown", "nobody described it", [buf, 8 * n], -15, given=host)
    request("-none", "no block store", [buf, 8 * n], -17, given=without)
    request("-outside", "", [SIZE - 8, 16], -4)

    def effect(name, what, function, args, result, wants, given=host, memory=memory, after=()):
        v("store-" + name, what, module, function, args, result, memory, after, effects=wants, **given)

    gone = [{"evict": {"hashes": [str(h) for h in here]}}]
    effect("evict", "what is being filled, and what is not there, stays so", "evict", [at, n], 4, gone)
    effect("evict-dirty", "only 32 bits count", "evict", [dirty | at, dirty | n], 4, gone)
    effect("evict-twice", "a block that is named twice goes once", "evict", [at, 2], 2, [{"evict": {"hashes": [str(here[0])]}}], memory=runs((at, data[:8] * 2)))
    effect("evict-request", "the blocks of the request", "evict", [0, 0], 4, gone, asked)
    effect("evict-request-unknown", "nobody described it", "evict", [0, 0], -15, [])
    effect("evict-none", "no block store", "evict", [at, n], -17, [], without)
    effect("evict-outside", "", "evict", [SIZE - 8, 2], -4, [])

    later = [{"evict_after": {"hashes": [str(h) for h in here]}}]
    effect("evict-after", "nothing goes before the request has ended", "evict_after", [at, n], 4, later)
    effect("evict-after-dirty", "only 32 bits count", "evict_after", [dirty | at, dirty | n], 4, later)
    effect("evict-after-request", "the blocks of the request", "evict_after", [0, 0], 4, later, asked)
    effect("evict-after-no-id", "nobody can tell when the request has ended", "evict_after", [at, n], -15, [], {"host": {"store": store}})
    effect("evict-after-none", "no block store", "evict_after", [at, n], -17, [], without)
    effect("evict-after-outside", "", "evict_after", [SIZE - 8, 2], -4, [])

    def kept(*pairs):
        return [{"retain": {"claims": [{"hash": str(h), "priority": str(p)} for h, p in pairs]}}]

    scope = b"scope-a"

    def retain(name, what, claims, result, wants, args=(at, n), given=host, more=None, named=(0, 0), after=()):
        data = b"".join(claims)
        memory = runs((at, b"".join(u64(h) for h in hashes)), (4096, data), (5120, scope))
        effect("retain" + name, what, "retain", [*args, *(more or (4096, len(data))), *named], result, wants, given, memory, after)

    whole = (0, n, 50, 60000)
    retain("", "", [claim(*whole)], 4, kept(*((h, 50) for h in [*here, filling])),
           after=[{"at": 4096, "hex": claim(*whole).hex(), "record": "StoreClaim", "value": values(*whole)}])  # fmt: skip
    retain("-scope", "", [claim(0, 1, 50)], 4, kept((here[0], 50)), named=(5120, len(scope)))
    retain("-to-end", "", [claim(3, TO_END, 100, DAY30)], 4, kept((here[3], 100), (filling, 100)))
    retain("-highest", "of two claims for a block the higher one counts", [claim(0, 2, 10), claim(1, 3, 20)], 4, kept((here[0], 10), (here[1], 20), (here[2], 20)))
    retain("-0", "takes back what nobody has claimed", [claim(0, n, 0)], 4, kept())
    retain("-no-claims", "", [], 4, kept())
    retain("-past-list", "what the list does not have is not claimed", [claim(2, 1000, 7)], 4, kept((here[2], 7), (here[3], 7), (filling, 7)))
    retain("-request", "from and to count tokens, and a block counts with any of its own", [claim(15, 33, 9)], 4, kept(*((h, 9) for h in here[:3])), (0, 0), asked)
    retain("-request-unknown", "nobody described it", [claim(0, 16, 9)], -15, [], (0, 0))
    retain("-dirty", "only 32 bits count", [claim(0, 1, 50)], 4, kept((here[0], 50)), (dirty | at, dirty | n), more=(dirty | 4096, dirty | 24), named=(dirty, dirty))
    retain("-none", "no block store", [claim(0, n, 50)], -17, [], given=without)
    retain("-priority", "more than 100", [claim(0, 1, 101)], -4, [])
    retain("-ttl", "more than 30 days", [claim(0, 1, 1, DAY30 + 1)], -4, [])
    retain("-ttl-high", "2^64-1 ms", [claim(0, 1, 1, (1 << 64) - 1)], -4, [])
    retain("-empty", "a run has at least one block", [claim(1, 1, 1)], -4, [])
    retain("-backwards", "", [claim(2, 1, 1)], -4, [])
    retain("-second-bad", "all claims or none", [claim(0, 1, 1), claim(0, 1, 101)], -4, [])
    retain("-129", "at most 128 claims", [claim(0, 1, 1)] * 129, -7, [])
    retain("-ragged", "no multiple of 24 bytes", [claim(0, 1, 1)], -4, [], more=(4096, 23))
    retain("-claims-outside", "", [claim(0, 1, 1)], -4, [], more=(SIZE - 8, 24))
    retain("-scope-outside", "", [claim(0, 1, 1)], -4, [], named=(SIZE - 1, 2))
    retain("-hashes-outside", "", [claim(0, 1, 1)], -4, [], args=(SIZE - 8, 2))
