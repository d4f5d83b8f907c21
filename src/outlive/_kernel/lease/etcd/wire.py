"""The answers of etcd's JSON gateway, as far as we read them. Numbers of 64 bits come as strings, bytes as base64."""

from __future__ import annotations

import msgspec


class KeyValue(msgspec.Struct):
    """One key."""

    key: bytes = b""
    value: bytes = b""
    lease: int = 0


class RangeAnswer(msgspec.Struct):
    """Answer of `kv/range`."""

    kvs: list[KeyValue] = []


class OperationAnswer(msgspec.Struct):
    """The result of one operation of a transaction."""

    response_range: RangeAnswer = msgspec.field(default_factory=RangeAnswer)


class TransactionAnswer(msgspec.Struct):
    """Answer of `kv/txn`."""

    succeeded: bool = False
    responses: list[OperationAnswer] = []


class LeaseAnswer(msgspec.Struct):
    """Answer of `lease/grant`."""

    id: int = msgspec.field(name="ID")


class _Ttl(msgspec.Struct):
    seconds: int = msgspec.field(name="TTL", default=0)
    """Absent if the lease is gone."""


class KeepAliveAnswer(msgspec.Struct):
    """Answer of `lease/keepalive`, which is a stream of one."""

    result: _Ttl


class Empty(msgspec.Struct):
    """An answer that says nothing but yes."""


class TokenAnswer(msgspec.Struct):
    """Answer of `auth/authenticate`."""

    token: str


class WatchEvent(msgspec.Struct):
    """One event of a watch."""

    type: str = "PUT"


class _WatchResult(msgspec.Struct):
    created: bool = False
    canceled: bool = False
    cancel_reason: str = ""
    events: list[WatchEvent] = []


class WatchAnswer(msgspec.Struct):
    """One line of `watch`."""

    result: _WatchResult


class _StreamError(msgspec.Struct):
    message: str = ""
    grpc_code: int = 2


class ErrorAnswer(msgspec.Struct):
    """Why something was not done: a text and a code, or both in one for a stream."""

    error: str | _StreamError
    code: int = 2

    @property
    def reason(self) -> tuple[int, str]:
        """The code of gRPC, and etcd's sentence."""
        if isinstance(self.error, str):
            return self.code, self.error
        return self.error.grpc_code, self.error.message
