"""The API about itself."""

from __future__ import annotations

from functools import cache

import msgspec

from outlive.http.openapi import document_of
from outlive.http.operation import JSON, OPERATIONS, Call, Content, operation


@operation("GET", "/openapi.json", scope="viewer", reach="nothing", media=JSON)
async def openapi(call: Call) -> Content:
    """The OpenAPI 3.1 document of this API."""
    return Content(JSON, document_bytes())


@cache
def document_bytes() -> bytes:
    """The document, as `docs/openapi.json` has it."""
    return msgspec.json.format(msgspec.json.encode(document_of(OPERATIONS.values())), indent=1) + b"\n"
