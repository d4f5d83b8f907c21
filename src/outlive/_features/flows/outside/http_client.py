"""HTTP requests of flows: bounded in time and size, and only to where `allowed_hosts` allows.

On the event loop, with h11 for the protocol: a flow's step is one request, and what HTTP libraries add (pools, HTTP/2,
proxies of the environment, sessions with cookies) it does not need. A name is resolved once for each hop, its addresses
are checked, and one of those is connected to; the TLS certificate and the header Host are those of the name.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from urllib.parse import urljoin

import h11

from outlive._features.flows.outside.allowed_hosts import Reach, Target, parse_url
from outlive._features.flows.outside.grants import Bounds, check_targets
from outlive._features.flows.outside.http_answer import HEAD_BYTES_MAX, Answer, read_answer
from outlive.errors.outside import AnswerError, RedirectError, RequestError, UnreachableError

BYTES_MAX = 1024 * 1024
CONNECT_SECONDS = 10.0
TOTAL_SECONDS = 60.0
REDIRECTS_MAX = 5

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]*")
_OURS = {
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
"""Headers that say how this client sends; a request that had two of them could mean two things."""
_FOR_ANYONE = {"accept", "accept-language", "content-type", "user-agent"}
"""Headers that go along to another origin. Any other one may hold a credential, whatever its name."""
_NOT_IN_URL = re.compile(r"[^!-~]+")
_REDIRECTS = {301, 302, 303, 307, 308}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, and what it may take."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    connect_seconds: float = CONNECT_SECONDS
    """For names, connection and TLS of one hop."""
    total_seconds: float = TOTAL_SECONDS
    """For everything, redirects too."""
    bytes_max: int = BYTES_MAX
    """The limit for the body of the answer."""
    redirects_max: int = REDIRECTS_MAX
    """How many are followed; with 0 an answer that redirects is the answer."""
    bounds: tuple[Bounds, ...] = ()
    """Where it may go, for the secrets in it; a redirect too, whatever is left of it then."""


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name, as this machine resolves it."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Fetcher:
    """Sends requests."""

    def __init__(self, reach: Reach | None = None, *, resolve: Resolve = resolve, ca_file: str | None = None) -> None:
        self.reach = reach or Reach()
        self._resolve = resolve
        self._ca_file = ca_file
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, request: Request, *, is_complete: Callable[[bytes], bool] | None = None) -> Answer:
        """Send a request and read its answer, whatever its status is.

        Raises:
            RequestError, UrlError: it cannot be sent like this.
            HostRefusedError, AddressRefusedError: it may not be sent there.
            UnreachableError: there was no complete answer.
            SecretError: a secret in it may not be sent there.
            AnswerError: the answer cannot be taken.
            RedirectError: the answer leads elsewhere, and it may not be followed.
        """
        _check(request)
        target = parse_url(request.url)
        timeout = asyncio.timeout(request.total_seconds)
        try:
            async with timeout:
                return await self._follow(request, target, is_complete)
        except TimeoutError:
            if not timeout.expired():
                raise
            raise UnreachableError(target.origin, f"did not answer within {request.total_seconds:g} s") from None

    async def _follow(self, request: Request, target: Target, is_complete: Callable[[bytes], bool] | None) -> Answer:
        for hop in range(request.redirects_max + 1):
            answer = await self._send(request, target, is_complete)
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or location is None or not request.redirects_max:
                return replace(answer, url=target.url)
            if hop == request.redirects_max:
                break
            there = parse_url(urljoin(target.url, _NOT_IN_URL.sub(_quoted, location)).partition("#")[0])
            request = _redirected(request, answer.status, target, there)
            target = there
        raise RedirectError(
            target.origin, f"it is number {request.redirects_max + 1}, and at most {request.redirects_max} are followed"
        )

    async def _send(self, request: Request, target: Target, is_complete: Callable[[bytes], bool] | None) -> Answer:
        """One hop: one connection, one request, one answer."""
        check_targets(request.bounds, target)
        reader, writer = await self._connect(target, request.connect_seconds)
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX)
        try:
            writer.write(_sent(connection, request, target))
            await writer.drain()
            return await read_answer(
                reader,
                connection,
                origin=target.origin,
                bytes_max=request.bytes_max,
                is_complete=is_complete,
            )
        except (OSError, EOFError) as error:
            raise UnreachableError(target.origin, f"broke off: {_text(error)}") from None
        finally:
            writer.transport.abort()

    async def _connect(self, target: Target, seconds: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                return await self._connect_checked(target, seconds)
        except TimeoutError:
            if not timeout.expired():
                raise
            raise UnreachableError(target.origin, f"could not be connected to within {seconds:g} s") from None

    async def _connect_checked(
        self, target: Target, seconds: float
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        addresses = [str(target.address)]
        if target.address is None:
            self.reach.check(target, [])  # A host that may not be reached is not asked for either.
            try:
                addresses = await self._resolve(target.host, target.port)
            except (OSError, UnicodeError) as error:
                raise UnreachableError(target.origin, f"has no address: {_text(error)}") from None
        self.reach.check(target, addresses)
        reason = "has no address"
        for address in addresses:
            try:
                # Each gets its share of the time: many machines have an IPv6 address that leads nowhere.
                async with asyncio.timeout(seconds / len(addresses)):
                    return await asyncio.open_connection(
                        address,
                        target.port,
                        limit=HEAD_BYTES_MAX,
                        ssl=self._tls_context() if target.scheme == "https" else None,
                        server_hostname=target.host if target.scheme == "https" else None,
                    )
            except OSError as error:  # TLS and timeouts too. The next address may be better.
                reason = f"could not be connected to: {_text(error)}"
        raise UnreachableError(target.origin, reason)

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=self._ca_file)
        return self._tls


def _check(request: Request) -> None:
    if not _TOKEN.fullmatch(request.method):
        raise RequestError("the method", f"is {request.method!r}, which is not a method of HTTP")
    for name, value in request.headers.items():
        if not _TOKEN.fullmatch(name):
            raise RequestError(f"the header {name!r}", "has a name that no header has")
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise RequestError(f"the header {name!r}", "is set by Outlive itself; leave it out")
        if not _VALUE.fullmatch(value):
            raise RequestError(f"the header {name!r}", "has a line break or another character that no header has")


def _sent(connection: h11.Connection, request: Request, target: Target) -> bytes:
    """The bytes of a request."""
    headers = {
        "Host": target.authority,
        "User-Agent": "outlive",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        headers["Content-Length"] = str(len(request.body))
    own = {name.lower() for name in request.headers}
    lines = [(name, value) for name, value in headers.items() if name.lower() not in own]
    lines += [(name, value.strip(" \t")) for name, value in request.headers.items()]
    encoded = [(name.encode("ascii"), value.encode("latin-1")) for name, value in lines]
    head = h11.Request(method=request.method, target=target.path, headers=encoded)
    return b"".join([connection.send(each) for each in (head, h11.Data(request.body), h11.EndOfMessage())])


def _redirected(request: Request, status: int, here: Target, there: Target) -> Request:
    """The request of the next hop."""
    headers, body, method = dict(request.headers), request.body, request.method
    if status == 303 or (status in (301, 302) and method == "POST"):
        method = "HEAD" if method == "HEAD" else "GET"
        body = b""
        headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
    if not there.is_trusted_like(here):
        if body:
            raise RedirectError(here.origin, f"it would send the body to another origin, {there.origin}")
        headers = {name: value for name, value in headers.items() if name.lower() in _FOR_ANYONE}
    return replace(request, method=method, headers=headers, body=body)


def _quoted(found: re.Match[str]) -> str:
    """Some servers name a place in UTF-8, or with spaces."""
    return "".join(f"%{byte:02X}" for byte in found[0].encode("latin-1"))


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__


__all__ = ["BYTES_MAX", "Answer", "AnswerError", "Fetcher", "Reach", "Request"]
