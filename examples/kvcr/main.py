"""A real KVCR instance behind kvrt: what is refused never reaches it."""

import logging

from kvcr_instance import running  # a KVCR as it can be had without a GPU

import kvrt
from kvrt.guard import Guard
from kvrt.kvcr_policy import Policy

logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")


def fetch(source: str, *hashes: int) -> dict[str, object]:
    return {
        "action_id": "a1",
        "action_type": "kv.fetch",
        "action_version": "1.0",
        "payload": {"source_control_endpoint": source, "block_hashes": list(hashes)},
    }


def retain(*hashes: int) -> dict[str, object]:
    return {
        "action_id": "a2",
        "action_type": "kv.retain",
        "action_version": "1.0",
        "payload": {
            "execute_at": "request_completion",
            "include_current_request": False,
            "block_hashes": list(hashes),
            "priority": 5,
            "ttl_seconds": 600,
        },
    }


def envelope(*actions: dict[str, object]) -> dict[str, object]:
    return {"protocol_version": "0.1", "message_id": "m1", "actions": list(actions)}


# The deadline is generous, since an example may run on a busy machine; an engine keeps the 2 ms.
client = kvrt.Client(engine="example", deadline=1.0)
policy = Policy()
with running(policy=policy) as instance:
    kvcr = Guard(instance, client)  # from here on, the engine calls kvcr as it did before

    kvcr.submit_hint(envelope(fetch("tcp://127.0.0.1:23280", 1, 2, 3), retain(1, 2)), "r1")
    kvcr.submit_hint(envelope(fetch("tcp://203.0.113.9:1", 7)), "r2")  # not in fetch.allowed_sources
    for request, block in (("r1", 2), ("r2", 7)):
        status, tier = kvcr.query([block.to_bytes(8, "big")], request)[0]
        print(f"KVCR about block {block} of {request}: {status.value} {tier.value if tier else ''}")
    for request in ("r1", "r2"):
        kvcr.discard_hint(request)
    print("blocks with a claim, for the cache policy:", len(kvrt.retained.retained))
    print("kvrt about r1:", client.status("r1").state)
    print("what became of the envelopes:", kvcr.passage)
print("what the client counted:", client.counters())
client.close()
