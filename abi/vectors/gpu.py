"""Vectors of kvrt_gpu: calls, and the effects that they leave."""

import layout
from layout import u64

SIZE = 65536


def vectors(v, runs, hashes, dirty):
    module, at, buf = "kvrt_gpu", 2048, 8192
    there, known, nowhere = hashes[:2], hashes[2:5], hashes[5]  # on the device, only in the store, and neither
    device = {"block_bytes": "4096", "room": "8", "blocks": [str(h) for h in there]}
    store = {"blocks": [str(h) for h in [*there, *known]]}
    described = {**store, "block_size": "16", "request": [str(h) for h in hashes]}
    host, asked, without = ({"host": {"request_id": "r-1", "store": s, **({} if d is None else {"gpu": d})}} for s, d in ((store, device), (described, device), (store, None)))
    data = b"".join(u64(h) for h in hashes)
    memory = runs((at, data))
    n = len(hashes)
    tiers = bytes([3, 3, 0, 0, 0, 0])

    def after(b, where=buf):
        return [{"at": where, "hex": b.hex()}]

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

    def residency(name, what, args, result, wrote=(), given=host, memory=memory):
        v("gpu-residency" + name, what, module, "residency", args, result, memory, wrote, **given)

    residency("", "", [at, n, buf, n], n, after(tiers))
    residency("-dirty", "only 32 bits count", [dirty | at, dirty | n, dirty | buf, dirty | n], n, after(tiers))
    residency("-unaligned", "hashes may lie at any alignment", [at + 3, n, buf + 1, n], n, after(tiers, buf + 1), memory=runs((at + 3, data)))
    residency("-over", "the answer may lie over the list", [at, n, at, n], n, after(tiers, at))
    residency("-small", "nothing is written, the length comes back", [at, n, buf, n - 1], n)
    residency("-larger", "what lies behind the answer is not touched", [at, 1, buf, 8], 1, after(b"\x03" + b"\xaa" * 7), memory=runs((at, data), (buf, b"\xaa" * 8)))
    residency("-ask", "no buffer: the length comes back", [at, n, 0, 0], n)
    residency("-request", "the blocks of the request", [0, 0, buf, n], n, after(tiers), given=asked)
    residency("-request-unknown", "nobody described it", [0, 0, buf, n], -15)
    residency("-none", "no memory for blocks on a device", [at, n, buf, n], -17, given=without)
    residency("-outside", "", [SIZE - 8, 2, buf, n], -4)
    residency("-count-2-29", "2^29 hashes are 2^32 bytes", [at, 1 << 29, buf, n], -4)
    residency("-buffer-outside", "", [at, n, SIZE - 1, 2], -4)
    residency("-wraps", "offset + length wraps in 32 bits", [at, n, 0xFFFFFFFF, 2], -4)

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
