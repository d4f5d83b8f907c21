"""Small parts of the server: files, cursors, paths, ports, and what it keeps of its senders."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from outlive.errors import RunParkedError
from outlive.http import server, sse
from outlive.http.connections import WatchedApp, peer_of
from outlive.http.problem import Problem
from outlive.http.routing import PARTS_MAX, parts_of
from outlive.http.static import Page, is_mount, send_page, send_to_slash

SECURITY = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
PAGE = Page("text/css", b"body {}", b"packed", '"v1"', "max-age=60")
KEPT = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"max-age=60"),
    (b"etag", b'"v1"'),
    (b"vary", b"accept-encoding"),
]
PLAIN = [(b"content-type", b"text/css"), (b"content-length", b"7")]


@pytest.mark.parametrize(
    ("method", "headers", "status", "more", "body"),
    [
        ("GET", {}, 200, PLAIN, b"body {}"),
        ("HEAD", {}, 200, PLAIN, b""),
        ("GET", {"if-none-match": '"v0"'}, 200, PLAIN, b"body {}"),
        ("GET", {"if-none-match": '"v0", "v1"'}, 304, [], b""),
        (
            "GET",
            {"accept-encoding": "br, gzip"},
            200,
            [(b"content-encoding", b"gzip"), (b"content-type", b"text/css"), (b"content-length", b"6")],
            b"packed",
        ),
    ],
    ids=["plain", "head", "changed", "kept", "packed"],
)
async def test_file_is_sent_once_and_packed(
    method: str, headers: dict[str, str], status: int, more: list[Any], body: bytes
) -> None:
    """A reader that has it gets no body, and a reader that can unpack it gets fewer bytes."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    request: Any = SimpleNamespace(method=method, headers=headers)
    await send_page(send, request, PAGE, SECURITY)

    assert sent == [
        {"type": "http.response.start", "status": status, "headers": [*KEPT, *more]},
        {"type": "http.response.body", "body": body},
    ]


async def test_place_of_a_mount_is_sent_to_its_slash() -> None:
    """Links in a page are relative to the slash; only a look is sent there."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"root_path": "/tools/runs", "path": "/tools/runs", "method": "GET"}
    await send_to_slash(send, scope, SECURITY)

    assert is_mount(scope)
    assert is_mount(scope | {"root_path": "/tools/runs/"})
    for other in ({"method": "POST"}, {"path": "/tools/runs/"}, {"root_path": "", "path": ""}):
        assert not is_mount(scope | other)
    assert sent == [
        {
            "type": "http.response.start",
            "status": 307,
            "headers": [*SECURITY, (b"location", b"runs/"), (b"content-length", b"0")],
        },
        {"type": "http.response.body", "body": b""},
    ]


@pytest.mark.parametrize("text", ["", "7.12", "7.-1;tokens=34", "7.12;a%20b=0;tokens=-1"])
def test_cursor_is_read_as_it_was_written(text: str) -> None:
    """Wherever its reader was."""
    cursor = sse.read_cursor(text)

    assert cursor.write() == (text or sse.Cursor().write())


@pytest.mark.parametrize(
    "text",
    [
        "7",
        "x.1",
        "7.-2",
        "-1.3",
        "7.12;tokens",
        "7.12;tokens=-2",
        f"7.{2**31}",
        "7.12;" + "t" * (sse.ID_CHARACTERS_MAX - 6) + "=1",
    ],
    ids=lambda text: text[:12],
)
def test_cursor_that_this_server_does_not_write_is_refused(text: str) -> None:
    """One that is too long, too."""
    with pytest.raises(Problem):
        sse.read_cursor(text)


@pytest.mark.parametrize(
    ("scope", "parts"),
    [
        ({"path": "/runs/a b"}, ["runs", "a b"]),
        ({"path": "/runs/a/b", "raw_path": b"/runs/a%2Fb"}, ["runs", "a/b"]),
        ({"path": "/x/runs/a", "root_path": "/x"}, ["runs", "a"]),
        ({"path": "/x/runs/a/b", "raw_path": b"/x/runs/a%2Fb", "root_path": "/x"}, ["runs", "a/b"]),
        ({"path": "/runs/a/b", "raw_path": b"/other%2Fpath"}, ["runs", "a", "b"]),
        ({"path": "/x/y/runs", "raw_path": b"/x%2Fy/runs", "root_path": "/x/y"}, None),
        ({"path": "/a" * PARTS_MAX}, ["a"] * PARTS_MAX),
        ({"path": "/a" * (PARTS_MAX + 1)}, None),
    ],
    ids=["plain", "slash", "mounted", "both", "rewritten", "mount", "most", "more"],
)
def test_parts_of_a_path_are_found_as_they_were_sent(scope: dict[str, Any], parts: list[str] | None) -> None:
    """A part may hold a slash. A mount with one is not known, and neither is a path of too many parts."""
    scope = {"root_path": "", "raw_path": scope["path"].encode()} | scope
    if parts is None:
        with pytest.raises(Problem) as caught:
            parts_of(scope)
        assert caught.value.status == 404
    else:
        assert parts_of(scope) == parts


def test_free_port_is_the_first_that_none_listens_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is behind 65,535. A port that a server has just left is free, although its connections are remembered."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port: int = taken.getsockname()[1]
        assert port < server.free_port(port) <= port + server.PORTS_TRIED
        tried: list[Any] = []

        class Refusing(socket.socket):
            def setsockopt(self, *args: Any) -> None:
                tried.append(args)

            def bind(self, address: Any) -> None:
                tried.append(address)
                raise OSError

        monkeypatch.setattr("outlive.http.server.socket.socket", Refusing)
        assert server.free_port(65_534) == 0
    reuse = (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    assert tried == [reuse, ("127.0.0.1", 65_534), reuse, ("127.0.0.1", 65_535)]


async def test_what_is_not_http_is_handed_on() -> None:
    """The start of a server, for example, is not a request of a connection."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["type"], receive, send))

    receive: Any = object()
    send: Any = object()
    connections: Any = SimpleNamespace(begin=seen.append)
    await WatchedApp(app, connections)({"type": "lifespan"}, receive, send)

    assert seen == [("lifespan", receive, send)]


@pytest.mark.parametrize(("said", "peer"), [(("::1", "80", 0, 0), ("::1", 80)), (["10.0.0.1", 80], ("10.0.0.1", 80))])
def test_peer_is_known_however_it_is_said(said: Any, peer: Any) -> None:
    """A socket without an address and a port is like no other."""
    assert peer_of(said) == peer
    assert peer_of(("/run/socket",)) != peer_of(("/run/socket",))


class _View:
    """A batch whose items end, and which is then parked."""

    def __init__(self, parked: str) -> None:
        self._parked = parked

    async def items_as_they_finish(self, batch_id: str, *, after: int) -> AsyncIterator[tuple[Any, int]]:
        """See `View`."""
        assert (batch_id, after) == ("b", 3)
        for number in (4, 5):
            yield (number, number * 2, None), number + 1
        if self._parked:
            raise RunParkedError(self._parked, "no code")

    async def run(self, run_id: str) -> Any:
        """See `View`."""
        return SimpleNamespace(status="parked" if self._parked else "succeeded", reason="as it is")


@pytest.mark.parametrize("parked", ["", "b~2"])
async def test_stream_of_a_batch_ends_with_how_it_ended(parked: str) -> None:
    """If it is parked the last message says which run of it, and why; each message has the cursor behind its item."""
    view: Any = _View(parked)
    parts = [part async for part in sse.follow_items(view, "b", 3, lambda *item: list(item))]

    end = b'"parked","parked":"b~2","reason":"no code"' if parked else b'"succeeded","parked":null,"reason":"as it is"'
    assert parts[0] == sse.FIRST
    assert b"".join(parts[1:]) == (
        b"event: item\nid: 0.-1;items=5\ndata: [4,8,null]\n\n"
        b"event: item\nid: 0.-1;items=6\ndata: [5,10,null]\n\n"
        b'event: end\nid: 0.-1;items=6\ndata: {"status":' + end + b"}\n\n"
    )


async def test_silent_stream_says_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader, and what stands between, would take it for broken."""
    monkeypatch.setattr(sse, "ALIVE_SECONDS", 0.0)
    silent = asyncio.Event()

    class Silent(_View):
        async def items_as_they_finish(self, batch_id: str, *, after: int) -> AsyncIterator[Any]:
            await silent.wait()
            for each in range(0):
                yield each

    view: Any = Silent("")
    seen: list[bytes] = []
    async for part in sse.follow_items(view, "b", 3, lambda *item: list(item)):
        seen.append(part)
        if seen.count(sse.ALIVE) == 2:
            silent.set()

    assert seen[0] == sse.FIRST
    assert seen[1:3] == [sse.ALIVE] * 2
    assert seen[-1].startswith(b"event: end") or b"event: end" in seen[-1]
