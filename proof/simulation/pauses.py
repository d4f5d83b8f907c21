"""Those who pause a run, a workflow or everything, and resume it some seconds later.

That nothing begins meanwhile is for the ledger to see, and that everything goes on for the judge: a run that stays
paused does not end. A request to pause may arrive late, or be asked again by a user whose process died, and then come
behind the one to resume. So after the faults an operator lets go on what is still paused; where neither can have
happened there is no operator.
"""

from __future__ import annotations

from outlive.errors import RunFinishedError
from outlive.errors.run import RunNotParkedError
from proof.simulation.plan import WholePause
from proof.simulation.process import SimulatedEngine
from proof.simulation.program import Case, Pausing
from proof.simulation.request import Ask, UserRequest, Verb
from proof.simulation.world import World


class Pausers:
    """All who pause."""

    def __init__(self, world: World, ask: Ask) -> None:
        self._world = world
        self._ask = ask

    def open(self, case: Case) -> None:
        """Pause a run that was started."""
        for it in case.pauses:
            self._ask(it.after_seconds, UserRequest(f"pause {case.id}", self._pause(case, it)))

    def _pause(self, case: Case, it: Pausing) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            try:
                await engine.pause(case.id, by="ann")
            except RunFinishedError:
                return
            self.resume(case.id, seconds=it.seconds)

        return verb

    def resume(self, run_id: str, *, seconds: float = 0.0) -> None:
        """Let a run go on, after some seconds."""

        async def verb(engine: SimulatedEngine) -> None:
            try:
                await engine.resume(run_id)
            except (RunNotParkedError, RunFinishedError):
                return

        self._ask(seconds, UserRequest(f"resume {run_id}", verb))

    def open_whole(self, it: WholePause) -> None:
        """Pause a workflow, or everything, for a while."""

        async def verb(engine: SimulatedEngine) -> None:
            await (engine.pause(workflow=it.workflow) if it.workflow else engine.pause(all=True))
            self._world.sometimes["workflow paused" if it.workflow else "everything paused"] += 1
            self.resume_whole(it.workflow, seconds=it.seconds)

        self._ask(it.at, UserRequest(f"pause workflow {it.workflow or '*'}", verb))

    def resume_whole(self, workflow: str, *, seconds: float = 0.0) -> None:
        """Let a workflow go on, or with an empty name everything, after some seconds."""

        async def verb(engine: SimulatedEngine) -> None:
            await (engine.resume(workflow=workflow) if workflow else engine.resume(all=True))

        self._ask(seconds, UserRequest(f"resume workflow {workflow or '*'}", verb))
