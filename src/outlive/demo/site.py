"""The dashboard of the demo: that of every server, and one page more, on which a person kills workers.

The two operations behind that page are served here and stand in no table of operations. No other server has them.
"""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import Any

import msgspec

from outlive.dashboard.files import DashboardPages, pages
from outlive.demo.open_shop import NotAlive, OpenShop
from outlive.engine import Engine
from outlive.http.app import Api
from outlive.http.exchange import SECURITY, Receive, Request, Scope, Send
from outlive.http.gate import LOCAL_HOSTS, Gate
from outlive.http.limits import ApiLimits
from outlive.http.principal import loopback
from outlive.http.problem import MEDIA, Problem, problem_of

STATE = "/api/v1/demo"
KILL = "/api/v1/demo/kill"
BODY_BYTES_MAX = 1_000
BODY_SECONDS = 5.0
_END_OF_TABLE = "];\n"
_ENTRY = "  { path: '/demo', name: 'Kill a worker', key: 'x', module: './views/demo.js' },\n"


class Wanted(msgspec.Struct, frozen=True):
    """Which worker to kill."""

    worker: str


def demo_pages() -> DashboardPages:
    """The pages of the dashboard, and the one of the demo."""
    sources = dict(pages().sources)
    table = sources["views.js"].decode()
    assert table.endswith(_END_OF_TABLE), "the table of views ends differently"
    sources["views.js"] = (table.removesuffix(_END_OF_TABLE) + _ENTRY + _END_OF_TABLE).encode()
    sources["views/demo.js"] = (files("outlive.demo") / "views" / "demo.js").read_bytes()
    return DashboardPages(sources)


class DemoSite:
    """An ASGI app: the API and the dashboard of the demo's store, and two operations more."""

    def __init__(self, engine: Engine, shop: OpenShop) -> None:
        self._api = Api(engine, pages=demo_pages())
        self._gate = Gate(loopback, hosts=LOCAL_HOSTS, origins=(), limits=ApiLimits(), now=_loop_time)
        self._shop = shop

    def close(self) -> None:
        """The server stops."""
        self._api.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the specification of ASGI."""
        if scope["type"] != "http" or scope["path"] not in (STATE, KILL):
            await self._api(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            self._gate.check_place(request, None)
            await self._gate.principal(request, None)
            status, body = 200, await self._answer(request)
            media = "application/json"
        except Exception as error:
            problem = problem_of(error)
            status, body, media = problem.status, msgspec.json.encode(problem.body), MEDIA
        await _send(send, status, media, body)

    async def _answer(self, request: Request) -> bytes:
        match request.method, request.path:
            case "GET", path if path == STATE:
                return msgspec.json.encode(self._shop.look())
            case "POST", path if path == KILL:
                await self._kill(await request.body(bytes_max=BODY_BYTES_MAX, seconds=BODY_SECONDS))
                return msgspec.json.encode(self._shop.look())
            case _:
                raise Problem(405, "method_not_allowed", "this is not how it is used", "Use the page of the demo.")

    async def _kill(self, body: bytes) -> None:
        try:
            wanted = msgspec.json.decode(body, type=Wanted)
            await self._shop.kill(wanted.worker)
        except msgspec.DecodeError as error:
            raise Problem(400, "malformed", f"the body is not understood: {error}", 'Send {"worker": "A"}.') from None
        except NotAlive as error:
            raise Problem(409, "not_alive", f"worker {error} is not alive", "Wait until it is started again.") from None


async def _send(send: Send, status: int, media: str, body: bytes) -> None:
    headers: list[Any] = [*SECURITY, (b"content-type", media.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
