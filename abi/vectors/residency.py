"""Where the blocks of a list are, as more than one module tells it in a residency function."""

SIZE = 65536
AT, BUF = 2048, 8192


def after(b, where=BUF):
    return [{"at": where, "hex": b.hex()}]


def vectors(v, module, prefix, absent, runs, data, tiers, dirty, host, asked, without):
    """data are the hashes and tiers the answer; absent says what a host without it has not."""
    at, buf, n, memory = AT, BUF, len(tiers), runs((AT, data))

    def residency(name, what, args, result, wrote=(), given=host, memory=memory):
        v(prefix + "-residency" + name, what, module, "residency", args, result, memory, wrote, **given)

    residency("", "", [at, n, buf, n], n, after(tiers))
    residency("-dirty", "only 32 bits count", [dirty | at, dirty | n, dirty | buf, dirty | n], n, after(tiers))
    residency("-unaligned", "hashes may lie at any alignment", [at + 3, n, buf + 1, n], n, after(tiers, buf + 1), memory=runs((at + 3, data)))
    residency("-over", "the answer may lie over the list", [at, n, at, n], n, after(tiers, at))
    residency("-small", "nothing is written, the length comes back", [at, n, buf, n - 1], n)
    residency("-larger", "what lies behind the answer is not touched", [at, 1, buf, 8], 1, after(tiers[:1] + b"\xaa" * 7), memory=runs((at, data), (buf, b"\xaa" * 8)))
    residency("-ask", "no buffer: the length comes back", [at, n, 0, 0], n)
    residency("-request", "the blocks of the request", [0, 0, buf, n], n, after(tiers), given=asked)
    residency("-request-unknown", "nobody described it", [0, 0, buf, n], -15)
    residency("-none", absent, [at, n, buf, n], -17, given=without)
    residency("-outside", "", [SIZE - 8, 2, buf, n], -4)
    residency("-count-2-29", "2^29 hashes are 2^32 bytes", [at, 1 << 29, buf, n], -4)
    residency("-buffer-outside", "", [at, n, SIZE - 1, 2], -4)
    residency("-wraps", "offset + length wraps in 32 bits", [at, n, 0xFFFFFFFF, 2], -4)
