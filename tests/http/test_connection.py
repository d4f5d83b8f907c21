"""A real server answers clients that send no HTTP, and clients that send more than it takes."""

from __future__ import annotations

import asyncio
import re
import urllib.error
import urllib.request
from contextlib import suppress

import pytest

from outlive.http import Api
from outlive.http.server import HEAD_BYTES_MAX, new_loop, new_server
from outlive.testing import TestEngine
from tests.http.caller import served

GET = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n"
POST = b"POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"


async def said(port: int, *parts: bytes) -> bytes:
    """Everything that the server says to this until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(ConnectionError):
        for part in parts:
            writer.write(part)
            await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer


MALFORMED = (
    b"hello\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    GET + b"no colon\r\n\r\n",
    POST + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    POST + b"content-length: 2\r\ntransfer-encoding: rot13\r\n\r\n{}",
    CHUNKED + b"zz\r\n",
)


async def test_bytes_that_are_not_a_request_get_400(engine: TestEngine, parser: str) -> None:
    """Bytes that are not an HTTP request get 400 from the server itself, without asking the app."""
    async with served(Api(engine), http=parser) as port:
        found = [(await said(port, sent))[:13] for sent in MALFORMED]

    assert found == [b"HTTP/1.1 400 "] * len(MALFORMED)


@pytest.mark.parametrize("hosts", [b"", b"host: localhost\r\nhost: example.org\r\n"], ids=["no host", "two hosts"])
async def test_a_request_that_does_not_name_one_host_is_refused(engine: TestEngine, parser: str, hosts: bytes) -> None:
    """Whatever the parser of the server thinks of it. [S2]"""
    async with served(Api(engine), http=parser) as port:
        found = await said(port, b"GET /api/v1/runs HTTP/1.1\r\n" + hosts + b"connection: close\r\n\r\n")

    assert re.match(rb"HTTP/1.1 40[03] ", found)


@pytest.mark.parametrize(
    "target", ["http://evil.example/api/v1/runs", "http://localhost/api/v1/runs", "http:/api/v1/runs", "x/api/v1/runs"]
)
@pytest.mark.parametrize("is_split", [False, True])
def test_a_request_that_names_a_server_in_its_first_line_is_refused(
    parser: str, target: str, *, is_split: bool
) -> None:
    """A parser leaves that server out, and the request would be one for the host in its header. [S1 S2]"""
    first = f"GET {target} HTTP/1.1\r\n".encode()
    parts = [first[:1], first[1:9], first[9:]] if is_split else [first]

    async def ask() -> list[bytes]:
        async with TestEngine(worker=False) as engine, served(Api(engine), http=parser) as port:
            found = [await said(port, *parts, b"host: localhost\r\nconnection: close\r\n\r\n")]
            # Behind another request of the same connection too.
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(GET + b"\r\n")
            assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
            writer.write(first + b"host: localhost\r\nconnection: close\r\n\r\n")
            found.append(await reader.read())
            writer.close()
            return found

    with asyncio.Runner(loop_factory=new_loop) as runner:
        answers = runner.run(ask())

    assert [answer[:10] for answer in answers] == [b"HTTP/1.1 4"] * 2, answers


async def test_a_head_has_a_limit_where_other_machines_can_send_one(engine: TestEngine) -> None:
    """h11 has such a setting, and httptools, which is faster, has none: it is for programs of this machine. [S35]"""
    parsers = {
        each: new_server(None, address=each, has_keys=True, is_counted=True).config.http
        for each in ("127.0.0.1", "0.0.0.0")
    }
    async with served(Api(engine), http=parsers["0.0.0.0"]) as port:
        found = await said(port, GET + b"x: " + b"y" * 2 * HEAD_BYTES_MAX)

    assert parsers["127.0.0.1"] == "httptools"
    assert found.startswith(b"HTTP/1.1 400 ")


def test_a_server_without_httptools_parses_with_h11(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it cannot be installed."""
    monkeypatch.setattr("outlive.http.server.find_spec", lambda name: None)

    assert new_server(None, is_counted=True).config.http == "h11"


async def test_a_server_on_another_loop_refuses_a_request_that_names_a_server(engine: TestEngine) -> None:
    """`outlive dev` and `outlive demo` have such a loop: none of ours sees the first line there. [S1 S2]"""
    parser = new_server(None).config.http
    async with served(Api(engine), http=parser) as port:
        found = await said(
            port, b"GET http://localhost/api/v1/runs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        )

    assert (parser, found[:13]) == ("h11", b"HTTP/1.1 404 ")


async def test_requests_ahead_of_their_answers_are_answered_in_turn(engine: TestEngine, parser: str) -> None:
    """Requests that are sent before their answers came, as HTTP/1.1 allows, are answered in turn."""
    missing = b"GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n"
    async with served(Api(engine), http=parser) as port:
        found = await said(port, GET + b"\r\n" + missing + GET + b"connection: close\r\n\r\n")

    assert [b"200", b"404", b"200"] == re.findall(rb"HTTP/1.1 (\d+)", found)


async def test_a_sender_that_reads_after_its_body_gets_to_know_that_it_is_too_large(
    engine: TestEngine, parser: str
) -> None:
    """A sender that reads only after its body, such as `urllib`, gets 413, because the app reads and drops the rest of
    the body."""
    body = b" " * 12 * 1024 * 1024
    async with served(Api(engine), http=parser) as port:
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/runs", body, headers)
        with pytest.raises(urllib.error.HTTPError, match="413") as refused:
            await asyncio.to_thread(urllib.request.urlopen, request)
        refused.value.close()
        answers = await said(port, POST + b"connection: close\r\ncontent-length: 9999999\r\n\r\n" + body[:9999999], GET)

    assert answers.count(b"HTTP/1.1 ") == 1


async def test_no_body_behind_an_upgrade_is_read_in_part(engine: TestEngine, parser: str) -> None:
    """httptools leaves it out; the app says so, and a request without a body is answered."""
    head = b"upgrade: h2c\r\nconnection: upgrade, close\r\n"
    body = b'{"workflow":1}'
    async with served(Api(engine), http=parser) as port:
        found = await said(port, POST + head + b"content-length: %d\r\n\r\n" % len(body) + body)
        fine = await said(port, GET + head + b"\r\n")

    assert {"httptools": b"Upgrade", "h11": b"expected `str`"}[parser].lower() in found.lower()
    assert found.startswith(b"HTTP/1.1 4")
    assert fine.startswith(b"HTTP/1.1 200 ")
