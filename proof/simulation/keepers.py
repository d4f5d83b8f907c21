"""Those who start short runs that retention deletes: see `retention`."""

from __future__ import annotations

from proof.simulation.plan import Keeping
from proof.simulation.play import brief
from proof.simulation.process import SimulatedEngine
from proof.simulation.request import Ask, UserRequest

TEXT = "a text that is too long for a row, and so lies in a blob " * 3


class Keepers:
    """Those who start runs that are to be deleted."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.started: dict[str, str] = {}
        """What was acknowledged, and what must come of it."""

    def open(self, it: Keeping) -> None:
        """Start them all."""
        for number, at in enumerate(it.starts):
            self._start(f"brief-{number}", at)

    def _start(self, run_id: str, at: float) -> None:
        async def verb(engine: SimulatedEngine) -> None:
            await engine.start(brief, f"{run_id}: {TEXT}", id=run_id)
            self.started[run_id] = f"{run_id}: {TEXT}"

        self._ask(at, UserRequest(f"start {run_id}", verb))
