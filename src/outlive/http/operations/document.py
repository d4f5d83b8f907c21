"""The API about itself.

Documents are made when they are first asked for. That takes some tenths of a second, so a thread does it.
"""

from __future__ import annotations

import asyncio
from functools import cache, lru_cache

import msgspec

from outlive.http.openapi import document_of
from outlive.http.operation import JSON, OPERATIONS, Call, Content, operation
from outlive.http.page import STYLE, page_of
from outlive.http.plain_page import HTML

MOUNTS_MAX = 16
"""The number of mounts whose document is kept. A mount may have a name in its path that the client chooses."""


@operation("api.openapi", "GET", "/openapi.json", scope="viewer", reach="nothing", media=JSON)
async def openapi(call: Call) -> Content:
    """The OpenAPI 3.1 document of this API."""
    return Content(JSON, await asyncio.to_thread(document_bytes, call.mount))


@operation("api.docs", "GET", "/docs", scope="viewer", reach="nothing", media="text/html")
async def docs(call: Call) -> Content:
    """This API for people: every operation on one page, which needs no other host."""
    return Content(HTML, await asyncio.to_thread(_page))


@operation("api.docs_style", "GET", "/docs.css", scope="viewer", reach="nothing", media="text/css")
async def docs_style(call: Call) -> Content:
    """The style of the docs page."""
    return Content("text/css; charset=utf-8", STYLE.encode())


@cache
def _page() -> bytes:
    return page_of(document_of(OPERATIONS.values())).encode()


@lru_cache(MOUNTS_MAX)
def document_bytes(mount: str = "") -> bytes:
    """The document, as `docs/openapi.json` has it; below a mount it says where that is."""
    document = document_of(OPERATIONS.values()) | ({"servers": [{"url": mount}]} if mount else {})
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
