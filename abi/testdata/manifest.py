import sys


def leb(n):  # unsigned LEB128
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


module, manifest, result = sys.argv[1:]
name = b"kvrt.manifest"
body = leb(len(name)) + name + open(manifest, "rb").read()
with open(result, "wb") as f:
    f.write(open(module, "rb").read() + b"\0" + leb(len(body)) + body)
