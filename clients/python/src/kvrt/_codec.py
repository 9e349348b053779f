"""Frames of the data socket: a length of 4 bytes, big-endian, and one msgpack array.

msgspec encodes them where it is installed; else msgpack does.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping, Sequence, Set
from types import SimpleNamespace
from typing import Any

try:
    import msgspec
except ImportError:  # pragma: no cover - depends on the environment
    msgspec = None  # type: ignore[assignment]

# Largest payload of a frame, in bytes, until the daemon's hello says otherwise.
MAX_FRAME = 8 << 20

HELLO, PING, SUBMIT, FINISH, DISCARD, STATUS, FORMULATE, FORMULATE_BATCH, ERROR = 0, 1, 2, 3, 4, 5, 6, 7, 15
DESCRIBE, OUTCOMES, FETCH, PUT_BLOCK, GET_BLOCK, FOLLOW = 8, 9, 10, 11, 12, 13
ONEWAY, FORWARD = 1, 2
JSON, MSGPACK = 1, 2
VERSION = 1

# put(request, buffer, at) writes the frame of a request at offset `at`, which is the
# buffer's end or before it, and makes the frame's end the buffer's end. When it raises,
# what the buffer has from `at` on is undefined. encode(request) is the payload alone, and
# may be called by several threads at once.
Put = Callable[[Sequence[Any], bytearray, int], None]
Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], Any]


def plain(value: Any) -> Any:
    """Turns what an encoder does not know into what it does, or raises TypeError."""
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, type):
        kind = type(value)
        for known in ("__struct_fields__", "__dataclass_fields__", "model_fields", "__fields__"):
            if fields := getattr(kind, known, None):  # msgspec, dataclasses, pydantic 2 and 1
                return {name: getattr(value, name) for name in fields}
        if hasattr(kind, "__attrs_attrs__"):
            return {a.name: getattr(value, a.name) for a in kind.__attrs_attrs__}
        if isinstance(value, SimpleNamespace):
            return vars(value)
    if hasattr(value, "tolist"):  # numpy's and torch's numbers and arrays
        return value.tolist()
    if hasattr(value, "__index__"):
        return operator.index(value)
    if isinstance(value, (Sequence, Set)):
        return list(value)
    raise TypeError(f"a {type(value).__name__} cannot be sent in a hint")


def _msgspec_codec() -> tuple[Put, Encode, Decode]:
    encoder = msgspec.msgpack.Encoder(enc_hook=plain)
    encode_into = encoder.encode_into
    pack_into = struct.Struct(">I").pack_into

    def put(request: Sequence[Any], buffer: bytearray, at: int) -> None:
        encode_into(request, buffer, at + 4)
        pack_into(buffer, at, len(buffer) - at - 4)

    return put, encoder.encode, msgspec.msgpack.Decoder().decode


def _msgpack_codec() -> tuple[Put, Encode, Decode]:
    import msgpack

    pack = msgpack.Packer(default=plain, autoreset=True).pack

    def put(request: Sequence[Any], buffer: bytearray, at: int) -> None:
        body = pack(request)
        buffer[at:] = len(body).to_bytes(4, "big")
        buffer += body

    def encode(request: Any) -> bytes:
        body: bytes = msgpack.packb(request, default=plain)  # a packer of its own
        return body

    def decode(payload: bytes) -> Any:
        return msgpack.unpackb(payload, raw=False, strict_map_key=False)

    return put, encode, decode


def codec(name: str = "") -> tuple[Put, Encode, Decode]:
    """The encoders and the decoder; name is "msgspec", "msgpack", or "" for the best there is."""
    if name == "msgspec" or (not name and msgspec is not None):
        return _msgspec_codec()
    return _msgpack_codec()
