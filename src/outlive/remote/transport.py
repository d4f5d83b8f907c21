"""Requests and answers: HTTP/1.1 on a few connections that are kept, blocking, each on a thread of a small pool.

Every request may be sent twice. What only reads may anyway; what changes something carries a key of its own
(`Idempotency-Key`), by which the server knows a second one. So when a connection breaks, or a server is restarted, the
same request is sent again until the time is over.
"""

from __future__ import annotations

import gzip
import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from outlive._model import given
from outlive.errors import InvalidArgumentError

BROKEN = (OSError, http.client.HTTPException)
"""What a connection raises; time-outs, TLS and names that cannot be resolved are among them."""
KEPT_MAX = 16
NOTHING_MORE = 204


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    wait: float = 0.0
    """Seconds after which the server wants to be asked again, if it says so."""


class Part(NamedTuple):
    """One message of a stream, as it was sent."""

    name: str
    data: bytes
    id: str


class Listening:
    """A stream of the server that is read: server-sent events, each with one line of data."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()
        self.status = self._response.status
        self.is_over = self.status == NOTHING_MORE
        self.body = self._response.read() if self.status >= 400 else b""

    def read(self) -> Part | None:
        """The next message; None when the server has closed the stream. Blocks."""
        name, data, id = "message", b"", ""
        while line := self._response.readline():
            field, _, value = line.rstrip(b"\r\n").partition(b": ")
            if not field and data:
                return Part(name, data, id)
            if field == b"event":
                name = value.decode()
            elif field == b"data":
                data = value
            elif field == b"id":
                id = value.decode()
        return None

    def close(self) -> None:
        """Stop; a thread that reads meanwhile gets nothing more."""
        with suppress(OSError):
            if self._connection.sock is not None:
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class Transport:
    """Talks to one server. Safe to use from many threads."""

    def __init__(self, url: str, *, key: str | None, timeout: float) -> None:
        where = "outlive.connect"
        parts = urlsplit(given.text(where, "url", url, like="https://runs.example.com", most=2_000))
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            wanted = 'give the address of a server, for example "https://runs.example.com"'
            raise InvalidArgumentError(where, "url", url, wanted)
        if parts.username or parts.password:
            raise InvalidArgumentError(where, "url", "https://...@...", "give the key as key=, not in the address")
        if key is not None and (not key.isascii() or not key.isprintable() or not key.strip()):
            raise InvalidArgumentError(where, "key", "...", "give a key as `outlive keys create` prints it")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path.rstrip("/")
        self._host, self._port = parts.hostname, parts.port
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._key = key
        self.timeout = timeout
        self._kept: list[http.client.HTTPConnection] = []

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: bytes | None = None,
        key: str,
        timeout: float,
    ) -> Answer:
        """One request, and its answer.

        Args:
            key: by which the server knows the same request again.

        Raises:
            OSError, HTTPException: there was none in time (`BROKEN`).
        """
        headers = self._headers() | {"accept-encoding": "gzip"}
        if method != "GET":
            headers["idempotency-key"] = key
        if body is not None:
            headers["content-type"] = "application/json"
        with self._connection(timeout) as connection:
            connection.request(method, self._target(path, query), body=body, headers=headers)
            response = connection.getresponse()
            data = response.read()
            if response.headers.get("content-encoding") == "gzip":
                data = gzip.decompress(data)
            if response.will_close:
                connection.close()
            wait = response.headers.get("retry-after", "")
            return Answer(response.status, data, float(wait) if wait.isdigit() else 0.0)

    def listen(self, path: str, *, query: Mapping[str, object] | None = None, last_id: str | None = None) -> Listening:
        """Read a stream of the server, on a connection of its own.

        Raises:
            OSError, HTTPException: the server cannot be reached (`BROKEN`).
        """
        headers = self._headers() | {"accept": "text/event-stream"}
        if last_id is not None:
            headers["last-event-id"] = last_id
        connection = self._connect(self.timeout)
        connection.request("GET", self._target(path, query), headers=headers)
        return Listening(connection)

    def close(self) -> None:
        """Give the connections back."""
        kept, self._kept = self._kept, []
        for connection in kept:
            connection.close()

    def _headers(self) -> dict[str, str]:
        headers = {"accept": "application/json", "user-agent": "outlive"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        return headers

    def _target(self, path: str, query: Mapping[str, object] | None) -> str:
        pairs = [(name, value) for name, value in (query or {}).items() if value is not None]
        return f"{self._path}{path}{'?' if pairs else ''}{urlencode(pairs, doseq=True)}"

    @contextmanager
    def _connection(self, timeout: float) -> Iterator[http.client.HTTPConnection]:
        try:
            connection = self._kept.pop()
        except IndexError:
            connection = self._connect(timeout)
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None and len(self._kept) < KEPT_MAX:
            self._kept.append(connection)
        else:
            connection.close()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
