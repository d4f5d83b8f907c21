"""Files that a server hands out to anyone: they are the same for all, and show nothing of the store.

`Api` is given them and does not know what they are; the dashboard is (`outlive.dashboard`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from outlive.http.exchange import Request, Scope, Send
from outlive.http.gate import SAFE


@dataclass(frozen=True, slots=True)
class Page:
    """A file, as it is sent."""

    media: str
    body: bytes
    packed: bytes | None
    """The body compressed by gzip; None if that is not shorter."""
    tag: str
    """Its `ETag`."""
    cache_control: str


class Pages(Protocol):
    """Says which files there are."""

    def find(self, parts: list[str]) -> Page | None:
        """The file at the parts of a path below the app; None if there is none."""
        ...


async def send_page(send: Send, request: Request, page: Page, security: list[tuple[bytes, bytes]]) -> None:
    """Answer with a file, or with 304 if the sender has it."""
    headers = [(name, value) for name, value in security if name != b"cache-control"]
    headers += [
        (b"cache-control", page.cache_control.encode()),
        (b"etag", page.tag.encode()),
        (b"vary", b"accept-encoding"),
    ]
    if page.tag in request.headers.get("if-none-match", ""):
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    body = page.body
    if page.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        body = page.packed
        headers.append((b"content-encoding", b"gzip"))
    headers += [(b"content-type", page.media.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else body})


def is_mount(scope: Scope) -> bool:
    """Whether the request is for the place where the app is mounted, without the slash that relative links need."""
    root = str(scope.get("root_path") or "").rstrip("/")
    return bool(root) and scope["path"] == root and scope["method"] in SAFE


async def send_to_slash(send: Send, scope: Scope, security: list[tuple[bytes, bytes]]) -> None:
    """Send a browser to the same place with a slash at its end; relative, whatever a proxy calls it."""
    place = str(scope["path"]).rpartition("/")[2].encode("ascii", "ignore") + b"/"
    headers = [*security, (b"location", place), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 307, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
