"""One request, given to an ASGI app as a server would give it, which is cheaper than any client; and a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from outlive.http.server import new_server, serve


@asynccontextmanager
async def served(app: Any, *, http: str = "auto", **options: Any) -> AsyncIterator[int]:
    """The port of a real server of an app, with this parser."""
    server = new_server(app, port=0, **options)
    server.config.http = http
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(serve(server, ready=ready.set_result))
    try:
        yield int((await ready).rpartition(":")[2])
    finally:
        server.should_exit = True
        await task


class Answer(msgspec.Struct):
    """What the app said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The JSON of the body."""
        return msgspec.json.decode(self.body)

    @property
    def code(self) -> str:
        """The code of the error in a problem."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        return str(self.data["code"])


class Message(msgspec.Struct):
    """A message of a stream of events."""

    name: str
    id: str
    data: Any

    @classmethod
    def read(cls, text: bytes) -> Message | None:
        """A message, or None for a sign of life."""
        fields = dict(line.split(": ", 1) for line in text.decode().splitlines() if not line.startswith(":"))
        if "data" not in fields:
            return None
        return cls(fields["event"], fields.get("id", ""), msgspec.json.decode(fields["data"]))


class Caller:
    """Sends requests to an app."""

    def __init__(
        self, app: Callable[[Any, Any, Any], Awaitable[None]], *, key: str = "", address: str = "127.0.0.1"
    ) -> None:
        self._app, self._key, self._address = app, key, address

    async def get(self, path: str, **options: Any) -> Answer:
        """A GET."""
        return await self.send("GET", path, **options)

    async def post(self, path: str, data: Any = None, **options: Any) -> Answer:
        """A POST with JSON, or without a body."""
        return await self.send("POST", path, data, **options)

    async def follow(
        self, path: str, *, after: str = "", until: Callable[[list[Message]], bool] = lambda seen: False
    ) -> list[Message]:
        """The messages of a stream of events, until they end, or this is true: then the reader goes away."""
        seen: list[Message] = []
        left: list[bytes] = [b""]

        def read(body: bytes) -> bool:
            *whole, left[0] = (left[0] + body).split(b"\n\n")
            seen.extend(it for each in whole if (it := Message.read(each)) is not None)
            return until(seen)

        headers = {"last-event-id": after} if after else {}
        answer = await self.send("GET", path, headers=headers, leave_when=read)
        assert (200, "text/event-stream") == (answer.status, answer.headers["content-type"]), answer.body
        return seen

    async def send(
        self,
        method: str,
        path: str,
        data: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterable[bytes] | None = None,
        root: str = "",
        leave_when: Callable[[bytes], bool] = lambda body: False,
    ) -> Answer:
        """Any request; `body` instead of `data` is sent as it is. The sender goes away when it has got enough."""
        parts = _parts(data, body)
        own = {"host": "localhost"} | ({"authorization": f"Bearer {self._key}"} if self._key else {})
        if parts:
            own |= {"content-type": "application/json", "content-length": str(sum(map(len, parts)))}
        own |= headers or {}
        place, _, query = path.partition("?")
        messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        messages.append({"type": "http.request", "body": b"", "more_body": False})
        sent: list[dict[str, Any]] = []
        ended = asyncio.Event()

        async def receive() -> Any:
            if messages:
                return messages.pop(0)
            await ended.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if leave_when(message.get("body", b"")):
                ended.set()

        scope = {
            "type": "http",
            "method": method,
            "path": unquote(place),
            "raw_path": quote(place, safe="/%~:@!$&'()*+,;=").encode(),
            "root_path": root,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in own.items()],
            "client": (self._address, 5000),
        }
        await self._app(scope, receive, send)
        assert ended.is_set() or (sent[-1]["type"], sent[-1].get("more_body", False)) == ("http.response.body", False)
        headers_sent = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], headers_sent, b"".join(each.get("body", b"") for each in sent[1:]))


def _parts(data: Any, body: bytes | Iterable[bytes] | None) -> list[bytes]:
    if body is not None:
        return [body] if isinstance(body, bytes) else list(body)
    return [] if data is None else [msgspec.json.encode(data)]
