"""A real KVCR instance with a real NIXL agent, as it can be had without a GPU."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def running(policy: Any = None, blocks: int = 64) -> Iterator[Any]:
    """KVCR over UCX with `blocks` of 4 KiB of its own DRAM. Nothing of it needs a GPU."""
    os.environ.setdefault("NIXL_LOG_LEVEL", "WARN")
    logging.disable(logging.INFO)
    import numpy
    from kvcr import KVCR, KVCRBindings
    from kvcr.config import KVCRBackendConfigs, KVCRConfig, LocalDramOptions, RemoteFWDramOptions
    from kvcr.types import RegionDescriptor

    class Control:
        """KVCR's channel to peers: nobody is there."""

        def send(self, endpoint: str, message: bytes) -> bool:
            return True

        def recv(self) -> list[bytes]:
            return []

    class Keys:
        def encode(self, key: object) -> bytes:
            return int(str(key)).to_bytes(8, "big")

        def decode(self, key: bytes) -> int:
            return int.from_bytes(key, "big")

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    memory = numpy.zeros(blocks * 4096, dtype=numpy.uint8)
    engine = numpy.zeros(4096, dtype=numpy.uint8)  # one block of the serving engine's
    kvcr = KVCR(
        KVCRConfig(nixl_agent_name=f"kvrt-{os.getpid()}", pool_layouts=[("", 4096)], nixl_listen_port=port),
        KVCRBindings(
            request_pin=lambda keys: 1,
            poll_pin_results=lambda: (),
            release_pin=lambda handle: True,
            framework_control=Control(),
            key_adapter=Keys(),
            policy=policy,
        ),
        KVCRBackendConfigs(
            framework_regions=[RegionDescriptor(addr=engine.ctypes.data, size=4096)],
            local_dram=LocalDramOptions(pools=[("", memory.ctypes.data, memory.nbytes)]),
            remote_fw_dram=RemoteFWDramOptions(eager_ctrl_connect=False),
        ),
    )
    try:
        yield kvcr
    finally:
        kvcr.close()
        del memory, engine
