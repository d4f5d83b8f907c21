"""The keys below one prefix, and the few requests that are made about them.

<prefix>/id              the id of this prefix, made once by the first process
<prefix>/workers/<id>    one for each session, on a lease of its own
"""

from __future__ import annotations

import math

from outlive._kernel.lease.etcd.gateway import Gateway, LeaseGoneError
from outlive._kernel.lease.etcd.wire import Empty, KeepAliveAnswer, LeaseAnswer, RangeAnswer, TransactionAnswer
from outlive.errors import StoreUnavailableError

ENLIST_TRIES = 3


def identify(gateway: Gateway, suggestion: str, *, seconds: float) -> str:
    """The id of the prefix; it takes the suggested one if it has none."""
    key = _id_key(gateway)
    request = {
        "compare": [{"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}],
        "success": [{"request_put": {"key": key, "value": suggestion.encode()}}],
        "failure": [{"request_range": {"key": key}}],
    }
    decided = gateway.ask("kv/txn", request, TransactionAnswer, seconds=seconds)
    if decided.succeeded:
        return suggestion
    return decided.responses[0].response_range.kvs[0].value.decode(errors="replace")


def enlist(gateway: Gateway, prefix_id: str, worker_id: str, *, lease_seconds: float, seconds: float) -> int | None:
    """Put the key of a session on a new lease, and give the lease; None if the prefix has another id by now."""
    for _ in range(ENLIST_TRIES):
        # etcd counts whole seconds, and may make them more.
        wanted = {"TTL": str(math.ceil(lease_seconds))}
        lease = gateway.ask("lease/grant", wanted, LeaseAnswer, seconds=seconds).id
        put = {"key": _worker_key(gateway, worker_id), "value": b"", "lease": str(lease)}
        request = {"compare": [_has_id(gateway, prefix_id)], "success": [{"request_put": put}]}
        try:
            decided = gateway.ask("kv/txn", request, TransactionAnswer, seconds=seconds)
        except LeaseGoneError:
            continue  # This process stood still between the two, for longer than the lease.
        return lease if decided.succeeded else None
    raise StoreUnavailableError(str(gateway.address), f"{ENLIST_TRIES} leases ran out before they were used")


def keep_alive(gateway: Gateway, lease: int, *, seconds: float) -> bool:
    """Renew a lease; False if it is gone."""
    return gateway.ask("lease/keepalive", {"ID": str(lease)}, KeepAliveAnswer, seconds=seconds).result.seconds > 0


def dismiss(gateway: Gateway, worker_id: str, *, seconds: float) -> None:
    """End the lease of a session, of any process, and its key with it. If there is none, that is fine."""
    key = {"key": _worker_key(gateway, worker_id)}
    for found in gateway.ask("kv/range", key, RangeAnswer, seconds=seconds).kvs:
        try:
            gateway.ask("lease/revoke", {"ID": str(found.lease)}, Empty, seconds=seconds)
        except LeaseGoneError:
            """It has run out meanwhile."""


def list_alive(gateway: Gateway, prefix_id: str, *, seconds: float) -> set[str] | None:
    """The sessions that have a key, as the majority of the cluster knows it; None if the prefix has another id."""
    start = _worker_key(gateway, "")
    request = {
        "compare": [_has_id(gateway, prefix_id)],
        "success": [{"request_range": {"key": start, "range_end": after_all(start)}}],
    }
    decided = gateway.ask("kv/txn", request, TransactionAnswer, seconds=seconds)
    if not decided.succeeded:
        return None
    return {found.key.removeprefix(start).decode(errors="replace") for found in decided.responses[0].response_range.kvs}


def count_keys(gateway: Gateway, *, seconds: float) -> int:
    """How many sessions have a key, whichever id the prefix has."""
    start = _worker_key(gateway, "")
    return len(gateway.ask("kv/range", {"key": start, "range_end": after_all(start)}, RangeAnswer, seconds=seconds).kvs)


def watch_request(gateway: Gateway) -> dict[str, object]:
    """Asks to hear of every session whose key goes away."""
    start = _worker_key(gateway, "")
    return {"create_request": {"key": start, "range_end": after_all(start), "filters": ["NOPUT"]}}


def after_all(prefix: bytes) -> bytes:
    """The first key behind all keys that begin with this, which ends in a slash."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _id_key(gateway: Gateway) -> bytes:
    return f"{gateway.address.prefix}/id".encode()


def _worker_key(gateway: Gateway, worker_id: str) -> bytes:
    return f"{gateway.address.prefix}/workers/{worker_id}".encode()


def _has_id(gateway: Gateway, prefix_id: str) -> dict[str, object]:
    return {"key": _id_key(gateway), "target": "VALUE", "result": "EQUAL", "value": prefix_id.encode()}
