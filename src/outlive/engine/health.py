"""How an engine is: for the readiness probe of a service."""

from __future__ import annotations

from dataclasses import dataclass

from outlive._kernel.define.live_resources import HEALTH_SECONDS
from outlive._kernel.store.contract import Store
from outlive._tasks import within
from outlive.errors import OutliveError

HEALTHY = "healthy"


@dataclass(frozen=True, slots=True)
class Health:
    """How an engine is at this moment, in words: "healthy", or "unhealthy: ..." with the reason."""

    store: str
    """Whether the store answers."""
    worker: str | None
    """Whether its worker holds its lease and takes runs; None for an engine without one."""
    resources: dict[str, str]
    """The resources that it has set up or tried to, by name."""

    @property
    def is_ready(self) -> bool:
        """Whether everything is healthy."""
        return all(said == HEALTHY for said in (self.store, self.worker or HEALTHY, *self.resources.values()))

    def __repr__(self) -> str:
        said = {"store": self.store, "worker": self.worker, **self.resources}
        return f"<Health: {', '.join(f'{name} {words}' for name, words in said.items() if words)}>"


async def health_of(store: Store) -> str:
    """Whether a store answers."""
    try:
        await within(HEALTH_SECONDS, store.find_run("outlive-health"))
    except (OutliveError, TimeoutError) as error:
        return f"unhealthy: {error}"
    return HEALTHY
