"""A port for Prometheus and for probes: `GET /metrics`, `/health/live`, `/health/ready`, and nothing else.

It is for workers, which have no HTTP server, so it is a few lines of the standard library: one request for each
connection, a short head, and no body. It holds no data of runs, and needs no key.

A probe has to be answered whatever others do here, or the platform restarts the worker. So a new connection takes the
place of the oldest one, and requests for the same answer that come together share it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple

from outlive._tasks import own_task, within
from outlive.engine import Engine
from outlive.errors import ConfigurationError, OutliveError
from outlive.metrics.exposition import CONTENT_TYPE, exposition

HOST = "127.0.0.1"
HEAD_BYTES_MAX = 8_192
HEAD_SECONDS_MAX = 2.0
"""How long a client may take to ask."""
READ_SECONDS_MAX = 5.0
"""How long a client may take to read its answer."""
CONNECTIONS_MAX = 32
"""Connections at once; a further one takes the place of the oldest."""
PLAIN = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """The answer to a client."""

    status: HTTPStatus
    body: bytes
    kind: str = PLAIN

    def written(self, *, has_body: bool) -> bytes:
        """The answer as bytes for the connection."""
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\nContent-Type: {self.kind}\r\n"
            f"Content-Length: {len(self.body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (self.body if has_body else b"")


class MetricsServer:
    """Serves the metrics of one engine, also while the engine does not run."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, None] = {}
        """The oldest connection first."""
        self._answers: dict[str, asyncio.Task[Answer]] = {}
        """The answers that are being read from the store, by path."""

    async def start(self, port: int, *, host: str = HOST) -> str:
        """Listen; the URL of the metrics. Port 0 takes a free one.

        Raises:
            ConfigurationError: the address cannot be listened on.
        """
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES_MAX)
        except OSError as error:
            raise ConfigurationError(f"metrics cannot be served at {host}:{port}: {error.strerror or error}") from error
        found = self._server.sockets[0].getsockname()
        return f"http://{f'[{found[0]}]' if ':' in found[0] else found[0]}:{found[1]}/metrics"

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            with suppress(OSError, TimeoutError):
                await self._answer(reader, writer)
        finally:
            self._open.pop(writer, None)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, answer = "GET", Answer(HTTPStatus.BAD_REQUEST, b"this is not HTTP request\n")
        try:
            head = await within(HEAD_SECONDS_MAX, reader.readuntil(b"\r\n\r\n"))
        except asyncio.LimitOverrunError:
            answer = Answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, b"the head of the request is too long\n")
        except asyncio.IncompleteReadError:
            return
        else:
            line = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
            if len(line) == 3 and line[2].startswith("HTTP/1."):
                method = line[0]
                answer = await self._answer_to(method, line[1].partition("?")[0])
        writer.write(answer.written(has_body=method != "HEAD"))
        await within(READ_SECONDS_MAX, writer.drain())

    async def _answer_to(self, method: str, path: str) -> Answer:
        if path not in ("/metrics", "/health/live", "/health/ready"):
            return Answer(HTTPStatus.NOT_FOUND, b"there are /metrics, /health/live and /health/ready\n")
        if method not in ("GET", "HEAD"):
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, b"use GET\n")
        if path == "/health/live":
            return Answer(HTTPStatus.OK, b"ok\n")
        if path not in self._answers:
            self._answers[path] = answering = own_task(self._answer_from_store(path), name="outlive-metrics-answer")
            answering.add_done_callback(lambda _: self._answers.pop(path))
        return await asyncio.shield(self._answers[path])

    async def _answer_from_store(self, path: str) -> Answer:
        if path == "/metrics":
            return Answer(HTTPStatus.OK, await exposition(self._engine), CONTENT_TYPE)
        if not await self._is_ready():
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"not ready\n")
        return Answer(HTTPStatus.OK, b"ok\n")

    async def _is_ready(self) -> bool:
        try:
            return (await self._engine.health()).is_ready
        except OutliveError:  # It has not been entered yet, or stops.
            return False
