"""A daemon that misbehaves: `fake_daemon.py SOCKET BEHAVIOUR...`.

Each connection takes one of the behaviours, at random from a fixed seed.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
import time

import msgpack


def frame(*message: object) -> bytes:
    body = msgpack.packb(message)
    return len(body).to_bytes(4, "big") + body


HELLO = frame(0, 0, 0, 1, "fake", 8 << 20, 1)


def answer(request: list[object]) -> bytes:
    op, seq, flags = request[0], request[1], request[2]
    if op == 0:
        return HELLO
    if op == 1:
        return frame(1, seq, 0, 1, False)
    if flags & 1:
        return b""
    if op == 2:
        return frame(2, seq, 0, [["a1", "kv.fetch", "1.0", 1, 0, "", "fake", 1, 2, 3]], None)
    if op == 5:
        return frame(5, seq, 0, 1, 0, 2, True, False, 4, 5)
    if op == 6:
        return frame(6, seq, 0, None, [["p", 0, [], 0, "", 1, 2, 3]])
    return frame(op, seq, 0)


def requests(s: socket.socket):
    stream = s.makefile("rb")
    while len(head := stream.read(4)) == 4:
        body = stream.read(int.from_bytes(head, "big"))
        request = msgpack.unpackb(body)
        yield [*request, 0] if len(request) < 3 else request


def serve(s: socket.socket, behaviour: str, rng: random.Random) -> None:
    n = rng.randrange(1, 60)  # requests until the end, for those that end
    if behaviour == "close":
        return
    if behaviour == "deaf":
        time.sleep(rng.random() * 0.05)
        return
    if behaviour == "deaf-for-ever":
        time.sleep(3600)
    if behaviour == "huge":
        s.sendall(b"\xff\xff\xff\xff")
        time.sleep(0.01)
        return
    if behaviour == "garbage-at-once":
        s.sendall(rng.randbytes(300))
    for i, request in enumerate(requests(s)):
        if behaviour == "mute":
            if i > n:
                return
            continue
        if behaviour == "mute-for-ever":
            continue
        if behaviour == "version":
            s.sendall(frame(0, 0, 8, "protocol version 1 is not spoken here: version 2 is", 0))
            return
        if behaviour == "hello-of-2":
            s.sendall(frame(0, 0, 0, 2, "fake", 8 << 20, 1))
            continue
        if behaviour in ("garbage", "odd") and i > n:
            return
        if i and behaviour == "garbage":
            s.sendall(rng.randbytes(rng.randrange(1, 200)))
            continue
        if i and behaviour == "odd-forward":
            odd = [b"", b"{", b"\xc1", b"\x90", b"\x81\xa1a\x01", b'{"actions": {}}', "text", 7, [], rng.randbytes(40)]
            odd += [b'{"actions": [7]}', b'{"actions": [{"action_id": [], "action_type": {}}]}', b'{"actions": []}']
            row = ["a1", rng.choice(["kv.fetch", "kv.retain"]), "1.0", 1, 0, "", "fake", 1, 2, 3]
            s.sendall(frame(2, request[1], 0, [row], rng.choice(odd)))
            continue
        if i and behaviour == "odd":
            seq = request[1]
            odd = [{"a": 1}, 7, [], [2, "x", 0], [2, seq], [2, seq, 0, 7, None], [2, seq, 0, [[1]], None]]
            odd += [[5, seq, 0], [5, seq, 0, "live"], [2, seq, 1], [seq, None, None], [2, seq + 1, 0, [], None]]
            body = msgpack.packb(rng.choice(odd))
            s.sendall(len(body).to_bytes(4, "big") + body)
            continue
        if behaviour == "old" and request[0] > 7:
            s.sendall(frame(request[0], request[1], 3, "unknown operation", 0))
            continue
        if behaviour == "odd-blocks" and request[0] > 7:
            rows = [[], [[1]], [["e", 0, 9, 0, "r", "m", 0, 77, 99, 1, 1, 1, 1, 1]], [["e", 0, 0, 0, "r", 7, *[0] * 8]], 7, None]
            rest = rng.choice([[], [rng.choice(rows)], [rng.choice(rows), "x"], [b""], ["x"], [1, 2, 3, 4, 5], [1, 2, 3, b"\0\1", ""]])
            s.sendall(frame(request[0], request[1], 0, *rest))
            continue
        reply = answer(request)
        if i and behaviour == "partial":
            s.sendall(reply[: rng.randrange(len(reply) + 1)])
            if i > n:
                return
            continue
        if i and behaviour == "slow":
            time.sleep(0.004)
        s.sendall(reply)
        if behaviour == "ok" and i > 10 * n or behaviour in ("cut", "slow") and i > n:
            return
        if behaviour == "drain" and i > n:
            s.sendall(frame(15, 0, 7, "the daemon is going away", 0))
            return


def run(s: socket.socket, behaviour: str, seed: int) -> None:
    with s:
        try:
            serve(s, behaviour, random.Random(seed))
        except (OSError, ValueError):
            pass


def main() -> None:
    path, *behaviours = sys.argv[1:]
    rng = random.Random(1)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(1024)
    os.write(1, b"ready\n")
    while True:
        s, _ = server.accept()
        behaviour = rng.choice(behaviours)
        threading.Thread(target=run, args=(s, behaviour, rng.randrange(1 << 30)), daemon=True).start()


main()
