"""Requests to etcd: JSON over HTTP, blocking, on one connection, with a bound on time and on whom to ask next.

What is asked here may be asked twice: a lease that was granted and never used runs out, and everything else says what
shall be, not what shall change. So whatever goes wrong with one endpoint is answered by asking the next one, and each
gets its share of the time that is left. An endpoint that has answered stays the first to be asked.

A member that has lost its leader would wait for one; the header `hasleader` makes it say so at once.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from outlive._kernel.lease.etcd.address import EtcdAddress, name_of
from outlive._kernel.lease.etcd.wire import ErrorAnswer, TokenAnswer
from outlive.errors import StoreUnavailableError

TRY_SECONDS_MIN = 0.05
BROKEN = (OSError, http.client.HTTPException, UnicodeError)
"""The errors of a connection; time-outs, TLS and names that cannot be resolved are among them."""
_TOKEN_OVER = ("invalid auth token", "revision of auth store is old")
_NO_AUTH = "authentication is not enabled"
_NOT_FOUND, _AWAY = 5, frozenset({1, 2, 4, 8, 10, 13, 14})
"""Codes of gRPC: the lease is gone; and all that another member, or the same one later, may answer differently."""
_HINTS = {
    "permission denied": "its user needs to read and write the keys under the prefix",
    "user name is empty": "it wants a user: write etcd://user:password@host",
    "invalid user ID or password": "check user and password",
}

T = TypeVar("T")


class AwayError(Exception):
    """This endpoint cannot answer now; another one may."""


class LeaseGoneError(Exception):
    """etcd does not know this lease, or not any more."""


class RefusedError(Exception):
    """etcd will not do this, whichever member is asked."""


class Gateway:
    """One connection to a cluster, used by one thread; only `interrupt` may be called from others."""

    def __init__(self, address: EtcdAddress, *, monotonic: Callable[[], float], turn: int = 0) -> None:
        self.address = address
        self._monotonic = monotonic
        self._turn = turn
        """Which endpoint is asked first."""
        self._token = ""
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._is_interrupted = False

    def ask(self, path: str, body: dict[str, Any], kind: type[T], *, seconds: float) -> T:
        """One request, and its answer, within about this time.

        Raises:
            LeaseGoneError: it was about a lease that is gone.
            StoreUnavailableError: no member could do it, or would.
        """
        deadline = self._monotonic() + seconds
        reasons = []
        for left in range(len(self.address.endpoints), 0, -1):
            share = max((deadline - self._monotonic()) / left, TRY_SECONDS_MIN)
            try:
                return self._ask_here(path, body, kind, share)
            except AwayError as error:
                reasons.append(f"{name_of(self._endpoint)}: {error}")
                self.move_on()
            except RefusedError as error:
                raise StoreUnavailableError(str(self.address), str(error)) from None
        raise StoreUnavailableError(str(self.address), "; ".join(reasons))

    def listen(self, path: str, body: dict[str, Any], kind: type[T], *, seconds: float, silence: float) -> Iterator[T]:
        """The lines of a stream, until nothing was heard for `silence` seconds.

        Raises:
            AwayError: this endpoint cannot be listened to any more.
            RefusedError: etcd will not let us listen.
        """
        self.close()
        response = self._send(path, body, seconds)
        assert self._socket is not None
        self._socket.settimeout(silence)
        try:
            while line := response.readline():
                yield _read(line, kind)
        except TimeoutError:
            return
        except _TokenOverError as error:
            self.forget_token()
            raise AwayError(str(error)) from None
        except BROKEN as error:
            raise AwayError(_say(error)) from error
        finally:
            self.close()
        raise AwayError("the stream has ended")

    def move_on(self) -> None:
        """Ask the next endpoint from now on."""
        self.close()
        self._turn = (self._turn + 1) % len(self.address.endpoints)

    def forget_token(self) -> None:
        """Say again who we are, before anything else."""
        self._token = ""

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        connection, self._connection, self._socket = self._connection, None, None
        if connection is not None:
            connection.close()

    def interrupt(self) -> None:
        """End what waits for an answer, now and from now on."""
        self._is_interrupted = True
        if (held := self._socket) is not None:
            with suppress(OSError):
                # Not the method of a TLS socket, which belongs to the thread that reads.
                socket.socket.shutdown(held, socket.SHUT_RDWR)

    # -- One endpoint ----------------------------------------------------------------------------------------

    @property
    def _endpoint(self) -> tuple[str, int]:
        return self.address.endpoints[self._turn]

    def _ask_here(self, path: str, body: dict[str, Any], kind: type[T], seconds: float) -> T:
        """Ask this endpoint, and once more for each thing that says nothing about it."""
        has_said_who = False
        while True:
            is_reused = self._connection is not None
            try:
                return _read(self._receive(self._send(path, body, seconds)), kind)
            except _TokenOverError as error:
                if has_said_who:
                    raise AwayError(str(error)) from None
                has_said_who = True
                self.forget_token()
            except AwayError as error:
                self.close()
                # A connection that was kept may have been closed while it was idle: the next one is a new one.
                if not is_reused or error.__cause__ is None or isinstance(error.__cause__, TimeoutError):
                    raise

    def _send(self, path: str, body: dict[str, Any], seconds: float) -> http.client.HTTPResponse:
        """Say who we are if need be, then ask."""
        if self.address.user and not self._token:
            who = {"name": self.address.user, "password": self.address.password}
            answer = self._receive(self._post("auth/authenticate", who, seconds))
            try:
                self._token = _read(answer, TokenAnswer).token
            except RefusedError as error:
                if _NO_AUTH not in str(error):
                    raise
        return self._post(path, body, seconds)

    def _post(self, path: str, body: dict[str, Any], seconds: float) -> http.client.HTTPResponse:
        headers = {"Content-Type": "application/json", "Grpc-Metadata-hasleader": "true"}
        if self._token:
            headers["Authorization"] = self._token
        try:
            connection = self._connect(seconds)
            connection.request("POST", f"/v3/{path}", msgspec.json.encode(body), headers)
            response = connection.getresponse()
            if response.status == http.client.NOT_FOUND and "json" not in response.headers.get_content_type():
                raise AwayError("it has no JSON gateway; etcd 3.4 or later is needed, with its gateway enabled")
        except BROKEN as error:
            raise AwayError(_say(error)) from error
        return response

    def _connect(self, seconds: float) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port = self._endpoint
            if self.address.tls is None:
                made = http.client.HTTPConnection(host, port, timeout=seconds)
            else:
                made = http.client.HTTPSConnection(host, port, timeout=seconds, context=self.address.tls)
            self._connection = made
            made.connect()
            # Kept apart: http.client gives its own away with an answer that ends the connection.
            self._socket = made.sock
        if self._is_interrupted:
            raise AwayError("interrupted")
        assert self._socket is not None
        self._socket.settimeout(seconds)
        return self._connection

    def _receive(self, response: http.client.HTTPResponse) -> bytes:
        try:
            return response.read()
        except BROKEN as error:
            raise AwayError(_say(error)) from error


class _TokenOverError(Exception):
    """We have to say again who we are."""


def _read(data: bytes, kind: type[T]) -> T:
    """An answer, or the error that it is."""
    try:
        if b'"error"' not in data:
            return msgspec.json.decode(data, type=kind, strict=False)
        code, reason = msgspec.json.decode(data, type=ErrorAnswer, strict=False).reason
    except msgspec.MsgspecError:
        raise AwayError(f"no answer of an etcd: {data[:80]!r}") from None
    reason = reason.removeprefix("etcdserver: ")
    if any(part in reason for part in _TOKEN_OVER):
        raise _TokenOverError(reason)
    if code == _NOT_FOUND:
        raise LeaseGoneError(reason)
    if code in _AWAY:
        raise AwayError(reason)
    hints = [hint for part, hint in _HINTS.items() if part in reason]
    raise RefusedError("; ".join([reason, *hints]))


def _say(error: BaseException) -> str:
    if isinstance(error, ConnectionResetError):  # A `RemoteDisconnected` is one, too.
        return f"{error}: it ended the connection without an answer (one that speaks TLS does; then write etcds://)"
    return str(error) or type(error).__name__
