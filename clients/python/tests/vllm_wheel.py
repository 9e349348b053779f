"""Makes the KVCR tier of an unpacked vllm wheel importable on a machine without torch.

What the tier itself is made of is real: vllm.v1.kv_hints, vllm.v1.kv_offload and kvcr. What it
imports besides is stood in for, module by module.
"""

from __future__ import annotations

import enum
import importlib.abc
import importlib.machinery
import logging
import sys
import types
from typing import Any
from unittest.mock import MagicMock


class _StandIn(types.ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {}) if name[0].isupper() else MagicMock(name=name)
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: a stand-in for what nobody else has."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in ("vllm", "kvrt", "kvcr", "nixl") or name.partition(".")[0].startswith("nixl"):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _stand_in(name: str, **names: Any) -> None:
    module = _StandIn(name)
    module.__dict__.update(names)
    sys.modules[name] = module


def _logger(name: str) -> logging.Logger:
    logger = logging.getLogger(name)
    for level in ("debug", "info", "warning"):
        setattr(logger, f"{level}_once", getattr(logger, level))
    return logger


class _Source(enum.Enum):
    EXTERNAL_UNSPECIFIED = 1
    HOST = 2
    DISK = 3


def open_wheel(folder: str) -> None:
    """folder holds vllm/, unpacked. kvcr is imported for real, first."""
    import kvcr  # noqa: F401
    import kvcr.control_channels  # noqa: F401

    connector = "vllm.distributed.kv_transfer.kv_connector.v1.offloading"
    packages = ["vllm", "vllm.v1.core"]
    packages += [connector.rsplit(".", n)[0] for n in range(5)] + [connector]
    for name in packages:  # without what their __init__ would import
        module = types.ModuleType(name)
        module.__path__ = [f"{folder}/{name.replace('.', '/')}"]
        sys.modules[name] = module
    _stand_in("typing_extensions", override=lambda method: method)
    _stand_in("vllm.logger", init_logger=_logger)
    _stand_in("vllm.config")
    _stand_in("vllm.platforms")
    _stand_in("vllm.v1.kv_cache_interface")
    _stand_in("vllm.v1.metrics")
    _stand_in("vllm.v1.metrics.cache_hit_source", CacheHitSource=_Source)
    _stand_in(f"{connector}.metrics", OffloadingConnectorStats=dict)
    _stand_in(
        "vllm.v1.core.kv_cache_utils",
        BlockHash=bytes,
        maybe_convert_block_hash=lambda h: int.from_bytes(h, "big") & ((1 << 64) - 1),
    )
    sys.meta_path.append(_Finder())
