"""Those who bring failed runs back: they repair what a run needs, retry it, and wait for its end again.

What must have come of it: a run that was retried ends like one that never failed, and no step of it that had completed
was called again (the ledger sees that).
"""

from __future__ import annotations

from outlive._kernel.values.run import ENDED
from outlive.errors import RunCancelledError, RunFailedError, RunTimedOutError
from outlive.errors.run import RunNotRetriableError
from proof.simulation.ledger import Ledger
from proof.simulation.process import SimulatedEngine
from proof.simulation.program import Case
from proof.simulation.request import Ask, NotYetError, UserRequest, Verb
from proof.simulation.world import World


class Repairers:
    """All who repair and retry."""

    def __init__(self, world: World, ledger: Ledger, ask: Ask) -> None:
        self._world = world
        self._ledger = ledger
        self._ask = ask
        self._ended: set[str] = set()
        """Runs that are not retried any more."""

    def open(self, case: Case) -> None:
        """Bring a run back whenever it fails."""
        if case.is_repaired:
            self._ask(0.0, UserRequest(f"repair {case.id}", self._repair(case), lambda: self._ended.add(case.id)))

    def may_go_on(self, case: Case) -> bool:
        """Whether a run that has ended may be retried yet."""
        return case.is_repaired and case.id not in self._ended

    def _repair(self, case: Case) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            try:
                await engine.get(case.id).result()
            except (RunCancelledError, RunTimedOutError):
                return
            except RunFailedError as error:
                # The message ends with what broke.
                self._ledger.repaired.add(str(error).rpartition(" ")[2])
                await self._retry(engine, case)
                raise NotYetError from None  # Until it has another end.

        return verb

    async def _retry(self, engine: SimulatedEngine, case: Case) -> None:
        try:
            await engine.retry(case.id, reason="repaired")
            self._world.sometimes["run retried"] += 1
        except RunNotRetriableError as error:
            if "worker" in str(error):
                return
            status = await engine.get(case.id).status()
            if status in ENDED and "another client" not in str(error):
                self._world.complain(f"run {case.id} is {status}, and cannot be retried: {error}")
