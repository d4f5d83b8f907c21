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
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from outlive._kernel.model import given
from outlive.errors import InvalidArgumentError
from outlive.http.sse import ALIVE_SECONDS

BROKEN = (OSError, http.client.HTTPException, EOFError, zlib.error)
"""The errors of a connection; time-outs, TLS and names that cannot be resolved are among them."""
AGAIN = frozenset({429, 502, 503, 504})
"""Answers of a server, or of what stands before it, after which the same request is sent again."""
KEPT_MAX = 16
NOTHING_MORE = 204
SILENCE_SECONDS = 3 * ALIVE_SECONDS
"""After how long a stream without a sign of life is taken for broken."""
SHOWN_BYTES_MAX = 1_000
"""How much is read of a stream that is none."""
PATH_CHARACTERS = "/%:@!$&'()*+,;=~"
"""The characters that a path may have besides letters and digits."""


class Answer(NamedTuple):
    """The answer of the server."""

    status: int
    body: bytes
    wait: float = 0.0
    """Seconds after which the server wants to be asked again, if it says so."""
    location: str = ""
    """Where it sends its callers instead, if it does."""
    is_unsure: bool = False
    """Whether an earlier request of the same call may have been carried out: it changes something, and had no answer
    that says that it was not."""


class Part(NamedTuple):
    """One message of a stream, as it was sent."""

    name: str
    data: bytes
    id: str


class Call:
    """A call for which one thread waits, and that any other thread may stop: the first one gets an error then, and the
    server notices."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self.is_stopped = False

    def begin(self, connection: http.client.HTTPConnection) -> None:
        """Connect, unless that is done.

        Raises:
            OSError: the server cannot be reached, or the call was stopped.
        """
        if not self.is_stopped and connection.sock is None:
            connection.connect()
        self._socket = connection.sock
        if self.is_stopped:
            raise ConnectionAbortedError("the call was stopped")

    def stop(self) -> None:
        """Break off."""
        self.is_stopped = True
        if self._socket is not None:
            with suppress(OSError):
                # Not its own method: that of a TLS socket would take away what the other thread reads with.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class Listening:
    """A stream of the server that is read: server-sent events, each with one line of data."""

    def __init__(self, connection: http.client.HTTPConnection, call: Call) -> None:
        self._connection, self.call = connection, call
        self._response = connection.getresponse()
        status = self._response.status
        self.is_over = status == NOTHING_MORE
        kind = self._response.headers.get_content_type()
        self.is_open = self.is_over or (status < 300 and kind == "text/event-stream")
        """Whether it is a stream at all; else `answer` says what it is."""
        body = b"" if self.is_open else self._response.read(SHOWN_BYTES_MAX if status < 400 else None)
        self.answer = _answer(self._response, body)

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
        self.call.stop()
        self._connection.close()


def _answer(response: http.client.HTTPResponse, body: bytes) -> Answer:
    wait, location = response.headers.get("retry-after", ""), response.headers.get("location", "")
    return Answer(response.status, body, float(wait) if wait.isdecimal() else 0.0, location)


WHERE = "outlive.connect"


def _address(url: str) -> tuple[SplitResult, int | None]:
    """An address with its port.

    Raises:
        InvalidArgumentError: it is none of a server.
    """
    plain = given.text(WHERE, "url", url, like="https://runs.example.com", most=2_000)
    if "@" in plain.partition("//")[2].partition("/")[0]:
        raise InvalidArgumentError(WHERE, "url", "https://...@...", "give the key as key=, not in the address")
    wanted = 'give the address of a server, for example "https://runs.example.com"'
    try:
        parts = urlsplit(plain)
        port = parts.port
    except ValueError as error:
        raise InvalidArgumentError(WHERE, "url", url, f"{wanted} ({error})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidArgumentError(WHERE, "url", url, wanted)
    return parts, port


def _checked_key(key: object) -> str | None:
    """A key as a header can have it; it is in no message.

    Raises:
        InvalidArgumentError: it is none.
    """
    if key is None or (isinstance(key, str) and key.isascii() and key.isprintable() and key.strip()):
        return key
    raise InvalidArgumentError(WHERE, "key", "...", "give a key as `outlive keys create` prints it")


class Transport:
    """Talks to one server. Safe to use from many threads."""

    def __init__(self, url: str, *, key: str | None, timeout: given.Span) -> None:
        parts, self._port = _address(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._path = quote(parts.path.rstrip("/"), safe=PATH_CHARACTERS)
        self._host = parts.hostname or ""
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._key = _checked_key(key)
        self.timeout = given.seconds(WHERE, "timeout", timeout)
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
        call: Call,
    ) -> Answer:
        """One request, and its answer.

        Args:
            key: by which the server knows the same request again.
            call: stops it.

        Raises:
            OSError, HTTPException: there was none in time (`BROKEN`).
        """
        headers = self._headers() | {"accept-encoding": "gzip"}
        if method != "GET":
            headers["idempotency-key"] = key
        if body is not None:
            headers["content-type"] = "application/json"
        with self._connection(timeout, call) as connection:
            # A server that wants no more of a body has answered before all of it was sent.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, self._target(path, query), body=body, headers=headers)
            response = connection.getresponse()
            data = response.read()
            if response.headers.get("content-encoding") == "gzip":
                data = gzip.decompress(data)
            return _answer(response, data)

    def listen(
        self, path: str, *, query: Mapping[str, object] | None = None, last_id: str | None = None, call: Call
    ) -> Listening:
        """Read a stream of the server, on a connection of its own. `call` stops it.

        Raises:
            OSError, HTTPException: the server cannot be reached (`BROKEN`).
        """
        headers = self._headers() | {"accept": "text/event-stream"}
        if last_id is not None:
            headers["last-event-id"] = last_id
        connection = self._connect(self.timeout)
        try:
            call.begin(connection)
            connection.request("GET", self._target(path, query), headers=headers)
            beating = connection.sock
            found = Listening(connection, call)
            if found.is_open:
                # A silent stream says from time to time that it is still there, however short an answer may take.
                beating.settimeout(max(self.timeout, SILENCE_SECONDS))
        except BaseException:
            connection.close()
            raise
        return found

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
    def _connection(self, timeout: float, call: Call) -> Iterator[http.client.HTTPConnection]:
        try:
            connection = self._kept.pop()
        except IndexError:
            connection = self._connect(timeout)
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        try:
            call.begin(connection)
            yield connection
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None and not call.is_stopped and len(self._kept) < KEPT_MAX:
            self._kept.append(connection)
        else:
            connection.close()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
