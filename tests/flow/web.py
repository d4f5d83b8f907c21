"""A real HTTP server for tests of flows: it remembers what it was asked, and answers as the test says."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Handler = Callable[[Asked], bytes]


def answer(status: int = 200, body: bytes | str = b"", **headers: str) -> bytes:
    """The bytes of an answer; `content_type=` is Content-Type."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Some", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


@dataclass
class Web:
    """A server that runs."""

    handle: Handler
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    server_names: list[str | None] = field(default_factory=list)
    """What TLS clients have asked for by name."""

    def url(self, path: str = "/", *, host: str = "127.0.0.1", scheme: str = "http") -> str:
        """Where it is."""
        return f"{scheme}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, path, _ = first.split(" ")
            self.asked.append(Asked(method, path, headers, body))
            writer.write(self.handle(self.asked[-1]))
            await writer.drain()
        except (OSError, EOFError):
            """The client has gone."""
        finally:
            writer.close()


@asynccontextmanager
async def serving(handle: Handler, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Web]:
    """A server on a free port of this machine."""
    web = Web(handle)
    if tls is not None:
        tls.sni_callback = lambda _, name, __: web.server_names.append(name)
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0, ssl=tls)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
        await server.wait_closed()
