"""The engine in ASGI frameworks: it lives as long as the application, and its API is mounted in it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest

import outlive


@outlive.workflow
async def greet_mounted(name: str) -> str:
    """Greets."""
    return f"hello, {name}"


def fastapi_app(engine: outlive.Engine) -> tuple[Any, AbstractAsyncContextManager[Any]]:
    """As docs/guides/fastapi.md shows it."""
    from fastapi import FastAPI

    app = FastAPI(lifespan=engine.lifespan)
    app.mount("/outlive", engine.asgi())
    return app, app.router.lifespan_context(app)


def starlette_app(engine: outlive.Engine) -> tuple[Any, AbstractAsyncContextManager[Any]]:
    """The same, without FastAPI."""
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = Starlette(routes=[Mount("/outlive", engine.asgi())], lifespan=engine.lifespan)
    return app, app.router.lifespan_context(app)


def litestar_app(engine: outlive.Engine) -> tuple[Any, AbstractAsyncContextManager[Any]]:
    """Litestar mounts an ASGI app with a handler."""
    from litestar import Litestar, asgi

    api = engine.asgi()

    @asgi("/outlive", is_mount=True, copy_scope=True)
    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        await api({**scope, "path": scope["path"].rstrip("/")}, receive, send)  # Litestar adds a slash.

    app = Litestar([mounted], lifespan=[engine.lifespan])
    return app, app.lifespan()


@pytest.mark.parametrize("make", [fastapi_app, starlette_app, litestar_app], ids=["fastapi", "starlette", "litestar"])
async def test_the_api_is_mounted_and_the_engine_lives_with_the_application(make: Any) -> None:
    """A run is started through the application and ends in it."""
    engine = outlive.Engine("memory:")
    app, life = make(engine)
    transport = httpx2.ASGITransport(app=app, client=("127.0.0.1", 1))
    async with life, httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        started = await client.post(
            "/outlive/api/v1/runs", json={"workflow": "greet_mounted", "arguments": {"name": "ann"}, "id": "hello-1"}
        )
        ended = await client.get("/outlive/api/v1/runs/hello-1/result", params={"wait": 20})

    assert (started.status_code, started.json()) == (201, {"id": "hello-1"})
    assert ended.json()["result"] == "hello, ann"
    assert engine.loop is None
