"""What counts as an envelope: KVCR's rule, for mappings and for structs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._codec import JSON, MSGPACK, Put, plain

_ENVELOPE = ("protocol_version", "message_id", "actions")
_ACTION = ("action_id", "action_type", "action_version", "payload")
_MISSING = object()


# Struct types that the encoders write as the map of their fields, by the field that tells what
# they are. A program has few, and a cache that has grown beyond reason begins anew.
_direct: dict[tuple[type, str], bool] = {}


def _is_direct(kind: type, telling: str) -> bool:
    known = _direct.get((kind, telling))
    if known is None:
        names = getattr(kind, "__struct_fields__", None)
        how = getattr(kind, "__struct_config__", None)
        known = (
            isinstance(names, tuple)
            and telling in names
            and getattr(kind, "__struct_encode_fields__", None) == names
            and getattr(how, "array_like", None) is False
            and getattr(how, "tag", "?") is None
        )
        if len(_direct) > 256:
            _direct.clear()
        _direct[kind, telling] = known
    return known


def envelope(hints: Any) -> Any:
    """The envelope as an encoder takes it: a dict, or a struct. ValueError names what is malformed.

    Only the shape is judged: everything below `actions` is judged by the daemon, action by action.
    """
    if _is_direct(type(hints), "actions") and type(hints.actions) is list:
        for action in hints.actions:
            if type(action) is not dict and not _is_direct(type(action), "action_type"):
                break
        else:
            return hints
    return as_dict(hints)


def as_dict(hints: Any) -> dict[Any, Any]:
    """The envelope as a dict of its own."""
    try:
        whole = _fields(hints, _ENVELOPE, "actions")
    except Exception as e:
        raise ValueError(f"malformed envelope: it cannot be read: {e!r}") from e
    if whole is None:
        raise ValueError(f"malformed envelope: a mapping or a struct is wanted, not {type(hints).__name__}")
    actions = whole.get("actions", _MISSING)
    if actions is _MISSING:
        raise ValueError("malformed envelope: actions is missing")
    if not isinstance(actions, list):
        raise ValueError(f"malformed envelope: actions must be a list, not {type(actions).__name__}")
    whole["actions"] = [_action(a) for a in actions]
    return whole


def _action(action: Any) -> Any:
    if type(action) is dict:
        return action
    try:
        fields = _fields(action, _ACTION, "action_type")
    except Exception:  # an object that fails when it is read is no action
        return None
    return action if fields is None else fields


def _fields(value: Any, names: tuple[str, ...], telling: str) -> dict[Any, Any] | None:
    """A mapping as a dict of its own; a struct by its public fields; None for anything else."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, type) or not hasattr(value, telling):
        return None
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def put_slowly(request: tuple[Any, ...], put: Put, buffer: bytearray, at: int) -> bool:
    """Writes a submit whose envelope the encoder refused. True when it could.

    An integer beyond 64 bits has no msgpack: the envelope goes as JSON. Where that fails too,
    an action that cannot be encoded goes as nil, which the daemon rejects; the others still run.
    """
    head, whole = request[:8], request[10]
    try:
        if type(whole) is not dict:
            whole = as_dict(whole)
        text = json.dumps(whole, default=plain, allow_nan=False, ensure_ascii=False)
        put((*head, JSON, "", text), buffer, at)
        return True
    except Exception:
        pass
    scratch = bytearray()
    actions = []
    for action in whole["actions"]:
        try:
            put((action,), scratch, 0)
            actions.append(action)
        except Exception:
            actions.append(None)
    rest = {}
    for key in _ENVELOPE[:2]:
        try:
            put((whole[key],), scratch, 0)
            rest[key] = whole[key]
        except Exception:
            continue
    try:
        put((*head, MSGPACK, "", {**rest, "actions": actions}), buffer, at)
        return True
    except Exception:
        return False
