"""Client of the kvrt daemon, for serving engines.

    client = kvrt.Client()
    client.submit_hint(request.kv_hints, request.request_id)   # as KVCR has it; waits for nothing
    client.discard_hint(request.request_id)

Importing it opens nothing and starts no thread.
"""

from ._options import Options, default_socket
from .aio import AsyncClient
from .blocks import Block, Fetched, Outcome, Outcomes, Stored
from .client import Client
from .null import NullClient
from .results import Counters, Dropped, Formulated, Identity, PolicyResult, Reply, Result, Status

__all__ = [
    "AsyncClient",
    "Block",
    "Client",
    "Counters",
    "Dropped",
    "Fetched",
    "Formulated",
    "Identity",
    "NullClient",
    "Options",
    "Outcome",
    "Outcomes",
    "PolicyResult",
    "Reply",
    "Result",
    "Status",
    "Stored",
    "default_socket",
]
__version__ = "0.1.0"
