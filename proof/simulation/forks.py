"""Those who fork runs, whatever these are doing, and what must have come of it: a fork ends as its program says."""

from __future__ import annotations

from outlive._kernel.values.run import ENDED
from outlive.errors import RunExistsError
from outlive.errors.run import RunNotForkableError
from proof.simulation.process import SimulatedEngine
from proof.simulation.program import Case, Forking
from proof.simulation.request import Ask, NotYetError, UserRequest, Verb
from proof.simulation.world import World


class Forkers:
    """All who fork."""

    def __init__(self, world: World, ask: Ask) -> None:
        self._world = world
        self._ask = ask

    def open(self, case: Case) -> None:
        """Fork a run that was started."""
        for it in case.forks:
            self._ask(it.after_seconds, UserRequest(f"fork {case.id} as {it.id}", self._fork(case, it)))

    def _fork(self, case: Case, it: Forking) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            try:
                await engine.fork(case.id, id=it.id)
            except RunExistsError:
                return  # A call that got no answer has done it.
            except RunNotForkableError as error:
                if "worker" in str(error):
                    raise NotYetError from None
                raise
            status = await engine.get(case.id).status()
            self._world.sometimes["ended run forked" if status in ENDED else "open run forked"] += 1

        return verb
