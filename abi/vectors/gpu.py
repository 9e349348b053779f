"""Vectors of kvrt_gpu: calls, and the effects that they leave."""

import layout
import residency
from layout import u64
from residency import AT as at
from residency import BUF as buf
from residency import SIZE


def vectors(v, runs, hashes, dirty):
    module = "kvrt_gpu"
    there, known, nowhere = hashes[:2], hashes[2:5], hashes[5]  # on the device, only in the store, and neither
    device = {"block_bytes": "4096", "room": "8", "blocks": [str(h) for h in there]}
    store = {"blocks": [str(h) for h in [*there, *known]]}
    described = {**store, "block_size": "16", "request": [str(h) for h in hashes]}
    host, asked, without = ({"host": {"request_id": "r-1", "store": s, **({} if d is None else {"gpu": d})}} for s, d in ((store, device), (described, device), (store, None)))
    data = b"".join(u64(h) for h in hashes)
    memory = runs((at, data))
    n = len(hashes)
    tiers = bytes([3, 3, 0, 0, 0, 0])

    info = {"device": "1", "block_bytes": "4096", "blocks": "8", "used": "2"}
    wrote = layout.device_info(info)

    def tell(name, what, args, result, where=None, given=host):
        runs_after = [] if where is None else [{"at": where, "hex": wrote.hex(), "record": "DeviceInfo", "value": info}]
        v("gpu-info" + name, what, module, "info", args, result, memory, runs_after, **given)

    tell("", "", [buf, 32], 32, buf)
    tell("-dirty", "only 32 bits count", [dirty | buf, dirty | 64], 32, buf)
    tell("-unaligned", "a buffer lies anywhere", [buf + 1, 32], 32, buf + 1)
    tell("-small", "nothing is written, the length comes back", [buf, 31], 32)
    tell("-ask", "no buffer: the length comes back", [0, 0], 32)
    tell("-none", "no memory for blocks on a device", [buf, 32], -17, given=without)
    tell("-outside", "", [SIZE - 31, 32], -4)
    tell("-wraps", "offset + length wraps in 32 bits", [0xFFFFFFFF, 32], -4)

    residency.vectors(v, module, "gpu", "no memory for blocks on a device", runs, data, tiers, dirty, host, asked, without)

    def prefetch(name, what, args, result, wants, given=host, memory=memory):
        v("gpu-prefetch" + name, what, module, "prefetch", args, result, memory, effects=wants, **given)

    brought = [{"prefetch": {"hashes": [str(h) for h in [*there, *known]]}}]
    prefetch("", "what is there stays, and what the store does not have does not come", [at, n], 3, brought)
    prefetch("-dirty", "only 32 bits count", [dirty | at, dirty | n], 3, brought)
    prefetch("-unaligned", "hashes may lie at any alignment", [at + 3, n], 3, brought, memory=runs((at + 3, data)))
    prefetch("-there", "nothing is left to bring", [at, 2], 0, [{"prefetch": {"hashes": [str(h) for h in there]}}])
    prefetch("-nowhere", "", [at, 1], 0, [{"prefetch": {"hashes": [str(h) for h in there]}}], memory=runs((at, u64(nowhere))))
    prefetch("-request", "the blocks of the request", [0, 0], 3, brought, asked)
    prefetch("-request-unknown", "nobody described it", [0, 0], -15, [])
    prefetch("-none", "no memory for blocks on a device", [at, n], -17, [], without)
    prefetch("-outside", "", [SIZE - 8, 2], -4, [])
    prefetch("-wraps", "offset + length wraps in 32 bits", [0xFFFFFFF8, 2], -4, [])
