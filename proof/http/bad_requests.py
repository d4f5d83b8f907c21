"""Requests that no client should send: malformed, oversized, slow, or cut off; each follows from its random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

HOST = b"host: localhost\r\n"
JSON = b"content-type: application/json\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"
TOO_LARGE = 5 * 1024 * 1024
"""More than a body may have."""
_PATHS = (b"/api/v1/runs", b"/api/v1/runs/r-1", b"/api/v1/schedules/s", b"/nothing", b"/webhooks/none")


class BadRequest(msgspec.Struct):
    """What is sent, and how."""

    kind: str
    parts: list[bytes]
    pause_seconds: float = 0.0
    """Between its parts."""
    goes_away: bool = False
    """Whether the sender closes the connection and reads nothing."""
    may_be_no_http: bool = False
    """Whether the server may refuse it before any app sees it."""

    @property
    def is_slow(self) -> bool:
        """Whether it takes seconds."""
        return self.pause_seconds > 0

    def is_fit(self, outcome: str) -> bool:
        """Whether this may become of it."""
        if self.goes_away:
            return outcome in ("went away", "closed")
        if outcome == "no HTTP":
            return self.may_be_no_http
        return outcome.startswith("4") and len(outcome) == 3


def bad_request(rng: random.Random) -> BadRequest:
    """One of those that are sent at once."""
    return rng.choice(_KINDS)(rng)


def _post(path: bytes, body: bytes, *, headers: bytes = JSON, length: int | None = None) -> bytes:
    size = b"content-length: %d\r\n" % (len(body) if length is None else length)
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + headers + size + b"\r\n" + body


def _noise(rng: random.Random) -> BadRequest:
    """Bytes that are not HTTP."""
    noise = rng.choice([rng.randbytes(rng.randrange(1, 2_000)), b"\x16\x03\x01" + rng.randbytes(200), b"SSH-2.0-x\r\n"])
    return BadRequest("noise", [noise.replace(b"\n", b"x") + b"\r\n\r\n"], may_be_no_http=True)


def _head(rng: random.Random) -> BadRequest:
    """A head that is wrong somewhere."""
    path = rng.choice(_PATHS)
    return BadRequest(
        "head",
        [
            rng.choice(
                [
                    b"GET " + path + b"\r\n\r\n",
                    b"G\x00T " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n",
                    b"GET " + path + b" HTTP/1.1\r\nno colon\r\n\r\n",
                    b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"x: a\x00b\r\n\r\n",
                    b"POST " + path + b" HTTP/1.1\r\n" + HOST + b"content-length: -1\r\n\r\n",
                    b"POST " + path + b" HTTP/1.1\r\n" + HOST + b"content-length: 1\r\ncontent-length: 2\r\n\r\nx",
                    b"POST " + path + b" HTTP/1.1\r\n" + HOST + b"transfer-encoding: rot13\r\n\r\n",
                    b"POST "
                    + path
                    + b" HTTP/1.1\r\n"
                    + HOST
                    + JSON
                    + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
                    b"GET " + path + b" HTTP/1.1\r\nhost: evil.example\r\n\r\n",
                    b"GET " + path + b" HTTP/1.1\r\n\r\n",
                    b"BREW " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n",
                    b"POST /api/v1/runs HTTP/1.1\r\n" + HOST + b"origin: https://evil.example\r\n\r\n",
                    b"GET /api/v1/runs HTTP/1.1\r\n" + HOST + b"x-forwarded-for: 1.2.3.4\r\n\r\n",
                ]
            )
        ],
        may_be_no_http=True,
    )


def _path(rng: random.Random) -> BadRequest:
    """A path or a query that means nothing."""
    target = rng.choice(
        [
            b"/api/v1/../../etc/passwd",
            b"/api/v1/runs/%ff%fe",
            b"/api/v1/runs/" + b"a/" * 500,
            b"/api/v1/runs/%00",
            b"/api/v1/runs?limit=no",
            b"/api/v1/runs?limit=99999999999999999999",
            b"/api/v1/runs?" + b"&".join(b"tag=x%%3D%d" % number for number in range(500)),
            b"/api/v1/runs?nothing=1",
            b"/api/v1/runs?after=" + bytes(rng.choices(b"abcdef0123456789", k=40)),
            b"/api/v1/runs?since=yesterday",
            b"/api/v1/runs?" + b"x" * 20_000,
            b"/api/v1/runs/none/history?after=1e9",
        ]
    )
    return BadRequest("path", [b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n"])


def _body(rng: random.Random) -> BadRequest:
    """A body that is not JSON, or not the JSON that is wanted."""
    body = rng.choice(
        [
            rng.randbytes(rng.randrange(1, 500)),
            b"{" * rng.randrange(1, 5_000),
            b"[" * 100_000,
            b'{"workflow": ' + b'{"a":' * 2_000 + b"1" + b"}" * 2_000 + b"}",
            b'{"workflow": "x", "priority": ' + b"9" * 5_000 + b"}",
            b'{"workflow": "x", "priority": 1e400}',
            b'{"workflow": "\xff"}',
            b'{"workflow": "\\ud800"}',
            b'{"workflow": ""}',
            b'{"workflow": 7}',
            b'{"workflow": "none of them"}',
            b'{"workflow": "x", "extra": 1}',
            b"null",
            b"",
        ]
    )
    headers = rng.choice([JSON, JSON, JSON, b"content-type: text/plain\r\n", b""])
    return BadRequest("body", [_post(b"/api/v1/runs", body, headers=headers)])


def _large(rng: random.Random) -> BadRequest:
    """More than a body may have."""
    part = b"x" * 65_536
    choice = rng.randrange(3)
    if choice == 0:
        return BadRequest("large", [_post(b"/api/v1/runs", b"", length=TOO_LARGE), *[part] * (TOO_LARGE // len(part))])
    if choice == 1:
        return BadRequest("large", [_post(b"/api/v1/runs", b"", length=10**15)])
    head = b"POST /api/v1/runs HTTP/1.1\r\n" + HOST + JSON + CHUNKED + b"\r\n"
    return BadRequest("large", [head, *[b"%x\r\n%b\r\n" % (len(part), part)] * 80, b"0\r\n\r\n"])


def _cut(rng: random.Random) -> BadRequest:
    """A request whose sender goes away in the middle."""
    whole = _post(b"/api/v1/runs", b'{"workflow": "none of them", "arguments": {"a": "' + b"x" * 2_000 + b'"}}')
    return BadRequest("cut", [whole[: rng.randrange(len(whole))]], goes_away=True)


def slow_request(rng: random.Random) -> BadRequest:
    """A request whose body comes bit by bit, and never wholly."""
    length = rng.choice([1_000, TOO_LARGE - 2 * 1024 * 1024])
    return BadRequest("slow", [_post(b"/api/v1/runs", b"", length=length), *[b" "] * 40], pause_seconds=1.0)


_KINDS: tuple[Callable[[random.Random], BadRequest], ...] = (_noise, _head, _path, _body, _large, _cut)
