"""Those who delete runs that have ended: of schedules, and those that a run has started detached."""

from __future__ import annotations

from datetime import timedelta

from proof.simulation.plan import Purging
from proof.simulation.process import SimulatedEngine
from proof.simulation.request import Ask, UserRequest
from proof.simulation.world import World


class Purgers:
    """All who delete."""

    def __init__(self, world: World, ask: Ask) -> None:
        self._world = world
        self._ask = ask

    def open(self, it: Purging) -> None:
        """Delete what has ended by then."""

        async def verb(engine: SimulatedEngine) -> None:
            done = await engine.purge(older_than=timedelta(seconds=it.kept_seconds), id_prefix=it.prefix)
            self._world.sometimes["runs deleted"] += done.deleted
            self._world.sometimes["runs kept from a deletion"] += done.found - done.deleted

        self._ask(it.at, UserRequest(f"purge {it.prefix}", verb))
