"""The port of a worker for Prometheus and probes: what it answers, and what bad clients get."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from outlive.errors import ConfigurationError
from outlive.metrics import CONTENT_TYPE
from outlive.metrics.serving import CONNECTIONS_MAX, HEAD_BYTES_MAX, MetricsServer
from outlive.testing import TestEngine
from tests.cli import shop
from tests.cli.conftest import Command, command

__all__ = ["command"]


async def ask(url: str, request: bytes) -> tuple[str, bytes]:
    """The status line and the body that a request gets."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(request)
    await writer.drain()
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.decode(), body


def get(path: str, method: str = "GET") -> bytes:
    """A request as a client sends it."""
    return f"{method} {path} HTTP/1.1\r\nHost: worker\r\n\r\n".encode()


@pytest.fixture
async def engine() -> TestEngine:
    """One that does not run yet."""
    return TestEngine()


@pytest.fixture
async def url(engine: TestEngine) -> AsyncIterator[str]:
    """Where its metrics are."""
    server = MetricsServer(engine)
    yield await server.start(0)
    server.close()


async def test_a_worker_answers_prometheus_and_probes(engine: TestEngine, url: str) -> None:
    """It lives before its store is there; it is ready when it works."""
    assert url.startswith("http://127.0.0.1:")
    assert "503" in (await ask(url, get("/health/ready")))[0]
    assert (await ask(url, get("/health/live")))[1] == b"ok\n"
    assert b"outlive_store_up 0\n" in (await ask(url, get("/metrics")))[1]
    async with engine:
        head, body = await ask(url, get("/metrics?format=text"))
        assert head.startswith("HTTP/1.1 200 OK")
        assert CONTENT_TYPE in head
        assert f"Content-Length: {len(body)}" in head
        assert (await ask(url, get("/health/ready")))[1] == b"ok\n"
        assert (await ask(url, get("/metrics", "HEAD")))[1] == b""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/"), "404 Not Found"),
        (get("/metrics", "POST"), "405 Method Not Allowed"),
        (b"hello\r\n\r\n", "400 Bad Request"),
        (b"\xff\x00 /metrics x\r\n\r\n", "400 Bad Request"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 2 * HEAD_BYTES_MAX, "431 Request Header Fields Too Large"),
        (b"GET /metrics HTT", ""),
    ],
)
async def test_other_requests_are_refused(url: str, request_: bytes, status: str) -> None:
    """Each with a clear answer, and the port goes on. [S36]"""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(request_)
    if not status:
        writer.write_eof()
    assert (await reader.read()).partition(b"\r\n")[0].decode().removeprefix("HTTP/1.1 ") == status
    writer.close()
    assert (await ask(url, get("/health/live")))[1] == b"ok\n"


@pytest.mark.parametrize("said", [b"", b"GET /metr"])
async def test_silent_connections_do_not_keep_a_probe_away(url: str, said: bytes) -> None:
    """A new connection takes the place of the oldest one: the platform would restart the worker else. [S35]"""
    place = urlsplit(url)
    silent = [await asyncio.open_connection(place.hostname, place.port) for _ in range(CONNECTIONS_MAX)]
    for _, writer in silent:
        writer.write(said)
    probes = [await ask(url, get("/health/live")) for _ in range(3)]
    (oldest, _), (newest, kept) = silent[0], silent[-1]
    kept.write(get("/metrics")[len(said) :])

    assert [body for _, body in probes] == [b"ok\n"] * 3
    assert await oldest.read() == b""
    assert (await newest.read()).startswith(b"HTTP/1.1 200 ")
    for _, writer in silent:
        writer.close()


async def test_requests_for_the_same_figures_share_one_answer(
    engine: TestEngine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred readers at once cost the worker one look at its store. [S35]"""
    begun, may_end, made = asyncio.Event(), asyncio.Event(), []

    async def slow(of: object) -> bytes:
        made.append(of)
        begun.set()
        await may_end.wait()
        return b"figures\n"

    monkeypatch.setattr("outlive.metrics.serving.exposition", slow)
    asking = [asyncio.ensure_future(ask(url, get("/metrics"))) for _ in range(5)]
    await begun.wait()
    assert (await ask(url, get("/health/live")))[1] == b"ok\n"
    may_end.set()

    assert [body for _, body in await asyncio.gather(*asking)] == [b"figures\n"] * 5
    assert made == [engine]


async def test_a_port_that_is_taken_is_refused_by_name(engine: TestEngine, url: str) -> None:
    """Before the worker claims anything."""
    port = urlsplit(url).port
    assert port is not None
    with pytest.raises(ConfigurationError, match=f"127.0.0.1:{port}"):
        await MetricsServer(engine).start(port)


def test_a_worker_process_serves_metrics_and_logs_json(tmp_path: Path, command: Callable[..., Command]) -> None:
    """Both options, as a person starts it; the log is lines of JSON, and says where the metrics are."""
    store = f"sqlite:{tmp_path / 'shop.db'}"
    worker = command(
        "worker", str(Path(shop.__file__)), "--store", store, "--metrics-port", "0", "--log-format", "json"
    )
    worker.ready()
    lines = [json.loads(line) for line in worker.log.splitlines()]
    place = next(line["message"] for line in lines if "metrics are served at" in line["message"]).rpartition(" ")[2]

    assert b"outlive_worker_up 1\n" in urllib.request.urlopen(place, timeout=10).read()
