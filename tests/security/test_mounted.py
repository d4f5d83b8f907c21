"""The API inside an application of others: whose check of a path, and whose check of a caller, counts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import Depends, FastAPI, HTTPException
from fastapi.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse

import outlive
from outlive.http import Api, Asking, Principal
from outlive.testing import TestEngine
from tests.http.caller import Caller

RUNS = "/outlive/api/v1/runs"
ELSEWHERE = {"origin": "https://evil.example"}


@outlive.workflow
async def mounted_patient() -> None:
    """Waits."""
    await outlive.wait_for_signal("go")


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine(worker=False) as engine:
        yield engine


async def everyone(asking: Asking) -> Principal:
    """Lets in whom the application around it has let through."""
    return Principal("the host", frozenset({"admin"}))


class Login:
    """What applications have in front of their routes: only webhooks, and who has signed in, get through."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        is_signed_in = any(name == b"cookie" for name, _ in scope["headers"])
        if is_signed_in or scope["path"].startswith("/outlive/webhooks/"):
            await self._app(scope, receive, send)
        else:
            await JSONResponse({"error": "sign in"}, 401)(scope, receive, send)


@pytest.mark.parametrize(
    "path",
    [
        RUNS,
        "/outlive%2Fwebhooks/api/v1/runs",
        "/outlive%2fwebhooks%2fx/api/v1/runs",
        "/outlive/webhooks/../api/v1/runs",
        "/outlive/webhooks/%2e%2e/api/v1/runs",
        "/outlive/webhooks/%2e%2e%2fapi/v1/runs",
        "/outlive/webhooks%2f/api/v1/runs",
        "/outlive/webhooks//api/v1/runs",
        "/outlive/%77ebhooks/../../outlive/api/v1/runs",
        "//outlive/api/v1/runs",
        "/OUTLIVE/api/v1/runs",
    ],
)
async def test_no_spelling_of_a_path_passes_a_check_of_the_application_and_means_another_one(
    engine: TestEngine, path: str
) -> None:
    """The application looks at the decoded path, and the API counts the parts of the path as it was sent. [S2 S47]"""
    app = FastAPI()
    app.mount("/outlive", Api(engine, auth=everyone))
    caller = Caller(Login(app))

    assert (await caller.get(path)).status in (401, 404)
    assert (await caller.get(RUNS, headers={"cookie": "session=ann"})).status == 200


async def test_a_slash_in_the_name_of_a_run_is_not_one_of_the_path(engine: TestEngine) -> None:
    """Below the place of the mount a part may hold any character, wherever the mount is. [S2 S47]"""
    for place in ("/outlive", "/a b/ü"):
        app = FastAPI()
        app.mount(place, Api(engine, auth=everyone))

        answer = await Caller(app).get(f"{place}/api/v1/runs/a%2Fb".replace(" ", "%20"))

        assert "no run has id 'a/b'" in answer.data["detail"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
async def test_an_application_with_cors_opens_the_api_to_no_page_of_another_site(
    engine: TestEngine, method: str
) -> None:
    """Its middleware answers the browser's question for the whole application, the API too. [S2 S47]"""
    app = FastAPI()
    app.mount("/outlive", Api(engine))
    app.add_middleware(CORSMiddleware, allow_origins=["*"], allow_credentials=True, allow_methods=["*"])
    asked = ELSEWHERE | {"access-control-request-method": method}

    assert (await Caller(app).send("OPTIONS", RUNS, headers=asked)).status == 200
    answer = await Caller(app).send(method, RUNS, headers=ELSEWHERE)

    assert (answer.status, answer.headers["access-control-allow-origin"]) == (403, "https://evil.example")
    assert (await Caller(app).get(RUNS, headers={"origin": "http://localhost"})).status == 200


async def test_dependencies_of_fastapi_do_not_guard_the_mounted_api(engine: TestEngine) -> None:
    """The dependencies of a FastAPI application do not guard the API that is mounted in it; its own keys do.
    [S3 S47]"""

    async def refuse() -> None:
        raise HTTPException(401)

    app = FastAPI(dependencies=[Depends(refuse)])
    app.mount("/outlive", Api(engine, auth="keys"))

    assert (await Caller(app).get(RUNS)).code == "unauthenticated"
    key = await engine.keys.create("ann")
    assert (await Caller(app, key=key.secret).get(RUNS)).status == 200


async def test_a_cookie_of_the_application_counts_only_from_its_own_pages(engine: TestEngine) -> None:
    """A function that knows the sessions of the application is a door; browsers send the cookie for any
    page. [S2 S47]"""

    async def session(asking: Asking) -> Principal | None:
        signed_in = asking.headers.get("cookie") == "session=ann"
        return Principal("ann", frozenset({"operator"})) if signed_in else None

    app = FastAPI()
    app.mount("/outlive", Api(engine, auth=session))
    caller, cookie = Caller(app, address="192.0.2.7"), {"cookie": "session=ann"}

    async def cancel(**headers: str) -> str:
        sent = cookie | {name.replace("_", "-"): value for name, value in headers.items()}
        return (await caller.post("/outlive/api/v1/runs/x/cancel", headers=sent)).code

    assert await cancel() == "run_not_found"
    assert await cancel(origin="http://localhost", sec_fetch_site="same-origin") == "run_not_found"
    assert await cancel(origin="https://evil.example") == "origin_refused"
    assert await cancel(origin="null") == "origin_refused"
    assert await cancel(sec_fetch_site="same-site") == "origin_refused"
    assert (await caller.get(RUNS)).code == "unauthenticated"


@pytest.mark.parametrize("path", ["/api/v1/runs/run-1/result?wait=60", "/api/v1/runs/run-1/cancel", "/webhooks/orders"])
async def test_a_caller_that_goes_away_does_not_fail_the_application(path: str) -> None:
    """A caller that goes away does not fail the middleware of FastAPI, which would log a page about each such request.
    [S35 S47]"""
    async with outlive.Engine("memory:") as engine:
        await engine.start(mounted_patient, id="run-1")
        await engine.flows.apply(
            "name: o\ntriggers: [{ webhook: /orders }]\nsteps: { s: { use: sleep, with: { seconds: 1 } } }"
        )
        app = FastAPI()
        app.mount("/outlive", Api(engine, auth=everyone))
        seen = list[str]()

        @app.middleware("http")
        async def timed(request: Any, call_next: Any) -> Any:
            answer = await call_next(request)
            seen.append(request.url.path)
            return answer

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            """The connection is closed."""

        place, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": "GET" if query else "POST",
            "path": f"/outlive{place}",
            "query_string": query.encode(),
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"2")],
        }
        await asyncio.wait_for(app(scope, receive, send), 20)
        assert seen == [f"/outlive{place}"]


@pytest.mark.parametrize("client", [None, ("", 0), ("unix:", 0), ("localhost", 1)])
async def test_a_sender_without_an_address_is_not_a_program_of_this_machine(engine: TestEngine, client: Any) -> None:
    """A server that listens at a socket file of a proxy knows no address. [S1 S47]"""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/runs",
        "headers": [(b"host", b"localhost")],
        "client": client,
    }
    await Api(engine)(scope, receive, send)
    assert sent[0]["status"] == 401


BESIDE_DJANGO = """
import asyncio
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpResponse
from django.urls import re_path
from starlette.applications import Starlette
from starlette.routing import Mount
from outlive.http import Api
from outlive.testing import TestEngine
from tests.http.caller import Caller

def guard(get_response):
    def answer(request):
        return get_response(request) if "x-user" in request.headers else HttpResponse("sign in", status=401)

    return answer

settings.configure(
    ROOT_URLCONF=__name__, ALLOWED_HOSTS=["shop.example"], MIDDLEWARE=[f"{__name__}.guard"], SECRET_KEY="x" * 50
)
urlpatterns = [re_path("", lambda request: HttpResponse(f"django has {request.path}"))]

async def main():
    async with TestEngine(worker=False) as engine:
        app = Starlette(routes=[Mount("/outlive", Api(engine, auth="keys")), Mount("/", get_asgi_application())])
        key = await engine.keys.create("ann")
        runs = "/outlive/api/v1/runs"
        for caller in (Caller(app), Caller(app, key=key.secret)):
            for path in ("/orders", runs, "/outlive%2Fapi/v1/runs", "//outlive/api/v1/runs", "/x/..%2foutlive/api"):
                for headers in ({}, {"x-user": "ann"}, {"host": "shop.example", "x-user": "ann"}):
                    print(path, *headers, (await caller.get(path, headers=headers)).status)

asyncio.run(main())
"""


def test_django_beside_the_api_guards_its_own_paths_and_no_others() -> None:
    """Django has no mounts, so both are mounted in another application: its middleware and its hosts say nothing of the
    API, the key of the API opens nothing of Django, and no spelling of a path of the API is one of it there. [S2 S3
    S47]"""
    place = str(Path(__file__).parents[2])
    script = [sys.executable, "-c", BESIDE_DJANGO]
    done = subprocess.run(script, capture_output=True, text=True, cwd=place, env=os.environ | {"PYTHONPATH": place})
    said = [line.rpartition(" ") for line in done.stdout.splitlines()]

    assert done.returncode == 0, done.stderr
    by_key = len(said) // 2
    without, with_key = ({asked: status for asked, _, status in part} for part in (said[:by_key], said[by_key:]))
    own = [asked for asked in without if asked.partition(" ")[0] == RUNS]
    assert [without[asked] for asked in own] == ["401", "401", "403"]
    assert [with_key[asked] for asked in own] == ["200", "200", "403"]
    others = without.keys() - own
    assert {asked: with_key[asked] for asked in others} == {asked: without[asked] for asked in others}
    assert without["/orders host x-user"] == "200"
    assert {without[asked] for asked in others if "x-user" not in asked} <= {"401", "404"}
