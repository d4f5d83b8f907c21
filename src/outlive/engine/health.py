"""How an engine is: for the readiness probe of a service."""

from __future__ import annotations

import msgspec

from outlive._kernel.define.live_resources import HEALTH_SECONDS
from outlive._kernel.store.contract import Store
from outlive._tasks import within
from outlive.errors import OutliveError

HEALTHY = "healthy"


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine is at this moment, in words: "healthy", or "unhealthy: ..." with the reason."""

    is_ready: bool
    """Whether everything is healthy."""
    store: str
    """Whether the store answers."""
    worker: str | None
    """Whether its worker holds its lease and takes runs; None for an engine without one."""
    resources: dict[str, str]
    """The resources that it has set up or tried to, by name."""

    def __repr__(self) -> str:
        said = {"store": self.store, "worker": self.worker, **self.resources}
        return f"<Health: {', '.join(f'{name} {words}' for name, words in said.items() if words)}>"


def health_now(store: str, worker: str | None, resources: dict[str, str]) -> Health:
    """How an engine is whose parts are so."""
    is_ready = all(said == HEALTHY for said in (store, worker or HEALTHY, *resources.values()))
    return Health(is_ready=is_ready, store=store, worker=worker, resources=resources)


async def health_of(store: Store) -> str:
    """Whether a store answers."""
    try:
        await within(HEALTH_SECONDS, store.find_run("outlive-health"))
    except (OutliveError, TimeoutError) as error:
        return f"unhealthy: {error}"
    return HEALTHY
