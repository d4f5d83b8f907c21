"""The engine in ASGI frameworks: it lives as long as the application, and its API and dashboard are mounted in it.

The programs are those of docs/guides/fastapi.md, each in a process of its own, as a web server would load it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.page import DOCS, blocks_of

MOUNTED = """
import asyncio, importlib, sys
import httpx2

async def main():
    web = importlib.import_module(sys.argv[1])
    life = web.app.lifespan() if hasattr(web.app, "lifespan") else web.app.router.lifespan_context(web.app)
    transport = httpx2.ASGITransport(app=web.app, client=("127.0.0.1", 1))
    async with life, httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        order = {"item": "lamp", "cents": 1200}
        started = await client.post(
            "/outlive/api/v1/runs", json={"workflow": "checkout", "arguments": {"order": order}, "id": "order-1"}
        )
        assert (started.status_code, started.json()) == (201, {"id": "order-1"})
        sent = await client.post("/outlive/api/v1/runs/order-1/signals/confirmed", json={})
        assert sent.is_success, sent.text
        ended = await client.get("/outlive/api/v1/runs/order-1/result", params={"wait": 20})
        assert ended.json()["result"] == "1200 cents charged for lamp"
        odd = await client.get("/outlive/api/v1/runs/a%2Fb")
        assert "no run has id 'a/b'" in odd.json()["detail"]
        page = await client.get("/outlive/")
        assert (page.status_code, page.headers["content-type"].split(";")[0]) == (200, "text/html"), page.text
        without_slash = await client.get("/outlive")
        assert (without_slash.status_code, without_slash.is_redirect) == (307, True)
    assert web.engine.loop is None

asyncio.run(main())
"""
ORDERS = """
import asyncio
import httpx2
import web

async def main():
    transport = httpx2.ASGITransport(app=web.app)
    async with (
        web.app.router.lifespan_context(web.app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        assert (await client.get("/orders/1")).status_code == 404
        assert (await client.post("/orders/1/confirm", params={"event_id": "a"})).status_code == 409
        for _ in range(2):
            placed = await client.put("/orders/1", json={"item": "lamp", "cents": 1200})
            assert (placed.status_code, placed.json()) == (202, {"run": "order-1"})
        for _ in range(2):
            assert (await client.post("/orders/1/confirm", params={"event_id": "a"})).status_code == 202
        assert await web.engine.get("order-1").result(timeout=20)
        looked = await client.get("/orders/1")
        assert looked.json() == {"status": "succeeded", "result": "1200 cents charged for lamp"}

asyncio.run(main())
"""

FOLLOWED = """
import asyncio, resource, time
import uvicorn
import web

async def main():
    config = uvicorn.Config(web.app, port=0, log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0)
    port = server.servers[0].sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /outlive/api/v1/runs/follow HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n")
    await reader.readuntil(b"event: list")
    run = await web.engine.start(web.checkout, web.Order("lamp", 1200))
    waiting, sender = await asyncio.open_connection("127.0.0.1", port)
    sender.write(f"GET /outlive/api/v1/runs/{run.id}/result?wait=50 HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n".encode())
    used, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await asyncio.sleep(2)
    used, grown = time.process_time() - used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert used < 1, f"{used:.2f} s of a processor in 2 s"
    assert grown < 50 * 1024, f"{grown} kB more"
    server.should_exit = True  # As at SIGTERM, and when it reloads.
    await asyncio.wait_for(serving, 30)
    assert web.engine.loop is None
    assert b" 503 " in await waiting.readline()

asyncio.run(main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with the programs of the guide."""
    for block in blocks_of(DOCS / "guides" / "fastapi.md"):
        first = block.text.partition("\n")[0]
        if first.endswith(".py"):
            (tmp_path / first.removeprefix("# ")).write_text(block.text, "utf-8")
    return tmp_path


def run(program: str, *arguments: str, folder: Path) -> None:
    """Run a program beside those of the guide; it says nothing and ends well."""
    (folder / "client.py").write_text(program, "utf-8")
    command = [sys.executable, "client.py", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert "Exception in ASGI application" not in done.stderr


@pytest.mark.parametrize("module", ["web", "web_starlette", "web_litestar"])
def test_the_api_and_the_dashboard_are_mounted_and_the_engine_lives_with_the_application(
    module: str, folder: Path
) -> None:
    """A run is started through the application and ends in it."""
    run(MOUNTED, module, folder=folder)


def test_the_orders_of_the_guide_are_placed_confirmed_and_looked_at(folder: Path) -> None:
    """The orders of the guide are placed, confirmed and read, even when a client repeats its requests."""
    run(ORDERS, folder=folder)


def test_a_reader_that_follows_runs_costs_nothing_and_does_not_keep_uvicorn_from_stopping(folder: Path) -> None:
    """A dashboard that is open in a browser is such a reader. The server stops as the guide says, answers a program
    that waits for a result with 503, and logs no failure of the application."""
    run(FOLLOWED, folder=folder)
