"""Probes: whether the process lives, and whether it can serve. They show nothing else, and need no key."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

from outlive.engine.health import HEALTHY, Health
from outlive.http.operation import Call, Content, operation
from outlive.metrics import CONTENT_TYPE, exposition

UNHEALTHY = "unhealthy: it does not answer"


class Healthy(Struct, frozen=True):
    """It is well."""

    status: Literal["ok"] = "ok"


class Unhealthy(Struct, frozen=True):
    """It is not; an operator sees why with `GET /api/v1/health`."""

    status: Literal["unavailable"] = "unavailable"


@operation("health.live", "GET", "/health/live", scope="none", reach="nothing", prefix="")
async def is_live(call: Call) -> Healthy:
    """Whether the process answers. Restart it if it does not."""
    return Healthy()


@operation(
    "health.ready",
    "GET",
    "/health/ready",
    scope="none",
    reach="nothing",
    prefix="",
    answers={200: Healthy, 503: Unhealthy},
)
async def is_ready(call: Call) -> Healthy | Unhealthy:
    """Whether it can serve now: its store answers, its worker holds its lease. Send it no requests while it cannot."""
    return Healthy() if await _is_ready(call) else Unhealthy()


@operation(
    "health.startup",
    "GET",
    "/health/startup",
    scope="none",
    reach="nothing",
    prefix="",
    answers={200: Healthy, 503: Unhealthy},
)
async def has_started(call: Call) -> Healthy | Unhealthy:
    """Whether it has started: its engine runs."""
    return Healthy() if call.engine.loop is not None else Unhealthy()


@operation("health.get", "GET", "/health", scope="viewer", reach="nothing")
async def health(call: Call) -> Health:
    """How the engine of this server is: its store, its worker, its resources."""
    found = await call.engine.health()
    # Why a store does not answer has its path or its host in it, and is in the log of the server.
    store = found.store if found.store == HEALTHY else UNHEALTHY
    return structs.replace(found, store=store)


@operation("health.metrics", "GET", "/metrics", scope="viewer", prefix="", media=CONTENT_TYPE)
async def metrics(call: Call) -> Content:
    """Figures of this engine and its store, for Prometheus."""
    return Content(CONTENT_TYPE, await exposition(call.engine))


async def _is_ready(call: Call) -> bool:
    if call.engine.loop is None:
        return False
    return (await call.engine.health()).is_ready
