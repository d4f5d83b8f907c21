"""A request to an ASGI app in the same process, as uvicorn would give it."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

App = Any


class Answer(msgspec.Struct):
    """What the app said."""

    status: int
    headers: dict[str, list[str]]
    body: bytes


async def ask(app: App, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
    """Send a request and read its answer; of a stream, the first part: then the reader goes away."""
    path, _, query = target.partition("?")
    incoming = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []
    has_enough = asyncio.Event()

    async def receive() -> Any:
        if incoming:
            return incoming.pop()
        await has_enough.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if message.get("body"):
            has_enough.set()

    scope = {
        "type": "http",
        "method": method,
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        "client": ("127.0.0.1", 5000),
    }
    await app(scope, receive, send)
    lines: dict[str, list[str]] = {}
    for name, value in sent[0]["headers"]:
        lines.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    body = b"".join(part.get("body", b"") for part in sent[1:])
    if lines.get("content-encoding") == ["gzip"]:
        body = gzip.decompress(body)
    return Answer(sent[0]["status"], lines, body)
