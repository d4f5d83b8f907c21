"""The life of one process in a crash test: it is born on what the last one left, and dies, or sees the run end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from outlive._kernel.define.workflow import Bound
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Payload, Run
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.store.contract import Store
from outlive.errors import RunFailedError, RunFinishedError, RunParkedError, StandstillError
from outlive.telemetry import Counters
from outlive.testing.crash.journal import StepKey, all_runs
from outlive.testing.crash.mortal import Death, MortalStore
from outlive.testing.crash.report import Survivor
from outlive.testing.engine import TestEngine
from outlive.testing.skip_clock import SkipClock, begin_nonces_after
from outlive.testing.watched_store import WatchedStore

STEP_SECONDS_MAX = 0.5
"""How long a step holds the time. One that hangs does so in every run of the test."""
STILL_SECONDS = 0.05
"""Only the test itself could move a run here, and it has said all it has to say."""
SKIPS_AFTER_END_MAX = 100
"""How often time skips for the detached runs that are left when the run has ended."""
DYING_SECONDS_MAX = 5.0
"""How long threads of a dead process, which cannot be stopped, may take to end."""
SIGNAL_KEY = "crash_everywhere"

Drive = Callable[[TestEngine, str], Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan that every process of a crash test follows."""

    workflow: Bound[Any]
    run_id: str
    signals: Sequence[tuple[str, Any]]
    drive: Drive | None
    check: Callable[[Survivor], Any] | None
    options: dict[str, Any]
    run_seconds_max: float
    """How long one run of the workflow may take, with its deaths and recoveries."""


class Witness(Counters):
    """Counts as an engine does, and remembers which attempts were begun."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[tuple[StepKey, int]] = []
        """Each call with the number of the attempt, in order."""

    def step_started(self, attempt: Any) -> None:
        """An attempt is about to be called."""
        super().step_started(attempt)
        command = attempt.command
        self.begun.append(((attempt.nonce, command.run, command.call), command.attempt))


class MortalEngine(TestEngine):
    """A test engine on a given store, with a witness."""

    def __init__(self, store: MortalStore, clock: SkipClock, **options: Any) -> None:
        super().__init__("memory:", clock=clock, **({"patience_seconds": STEP_SECONDS_MAX} | options))
        self._skipper.still_seconds = STILL_SECONDS
        self._mortal = store
        self._watched = WatchedStore(store)
        self._store = self._watched
        self.counters = self.witness = Witness()

    def unpack(self, payload: Payload, blobs: dict[str, bytes]) -> Stored:
        """The content of a payload."""
        return self._packer.unpack(payload, blobs)

    def workflow_of(self, name: str, version: int) -> WorkflowSpec:
        """The code of a workflow."""
        return self._registry.workflow(name, version)

    async def _stop(self) -> None:
        # A process that died while its engine was starting does not stop it gently: its store answers no more.
        if not self._mortal.died.is_set():
            await super()._stop()

    async def die(self) -> None:
        """Let nothing of it be seen any more."""
        worker = None if self._parts.sessions is None else self._parts.sessions._worker
        threads = None if worker is None else worker._executor.caller.threads
        self.abandon()
        waited = 0.0
        while threads is not None and threads.busy and waited < DYING_SECONDS_MAX:
            await asyncio.sleep(0.001)
            waited += 0.001


@dataclass(slots=True)
class Ended:
    """How everything ended in a process that lived."""

    result: Any = None
    error: str = ""
    trouble: str = ""
    """Why the run has not ended."""
    runs: dict[str, str] = field(default_factory=dict)
    """The end of every run of the store, by id, as text."""


class Life:
    """One process."""

    def __init__(self, plan: Plan, inner: Store, clock: SkipClock, death: Death | None) -> None:
        self._plan = plan
        self._clock = clock
        self.store = MortalStore(inner, death)
        self.engine = MortalEngine(self.store, clock, **plan.options)

    @property
    def begun(self) -> list[tuple[StepKey, int]]:
        """The attempts that it began."""
        return self.engine.witness.begun

    async def live(self, crashes: Sequence[str]) -> Ended | None:
        """Run to the end; None if it died on the way."""
        begin_nonces_after(self._clock, len(await all_runs(self.store.inner, roots_only=True)))
        loop = asyncio.get_running_loop()
        older = asyncio.all_tasks(loop)
        script = loop.create_task(self._play(tuple(crashes)), name="outlive-life")
        death = loop.create_task(self.store.died.wait(), name="outlive-death")
        try:
            await asyncio.wait([script, death], return_when=asyncio.FIRST_COMPLETED)
            return script.result() if script.done() else None
        finally:
            # Nothing that it still says reaches the store. What waits is cancelled first, so that it hears nothing.
            await _end_tasks({script, death})
            await self.engine.die()
            await _end_tasks(asyncio.all_tasks(loop) - older)

    async def _play(self, crashes: tuple[str, ...]) -> Ended:
        plan = self._plan
        await self.engine.__aenter__()
        if await self.store.find_run(plan.run_id) is None:
            await self.engine.start(plan.workflow, id=plan.run_id)
        for number, (name, payload) in enumerate(plan.signals):
            await self._signal(name, payload, f"{SIGNAL_KEY}/{number}")
        if plan.drive is not None:
            with suppress(RunFinishedError):
                await _called(plan.drive, self.engine, plan.run_id)
        ended = await self._end()
        if plan.check is not None and not ended.trouble:
            handle = self.engine.get(plan.run_id)
            try:
                await _called(plan.check, Survivor(self.engine, handle, ended.result, ended.error, crashes))
            except Exception as error:
                error.add_note("the process died " + (", and again ".join(crashes) or "nowhere"))
                raise
        await self.engine.__aexit__(None, None, None)
        return ended

    async def _signal(self, name: str, payload: Any, key: str) -> None:
        # A run that has ended with this signal has taken it, and one that has ended without never wanted it.
        with suppress(RunFinishedError):
            await self.engine.signal(self._plan.run_id, name, payload, key=key)

    async def _end(self) -> Ended:
        ended = Ended()
        try:
            ended.result = await self.engine.get(self._plan.run_id).result()
        except RunFailedError as error:
            ended.error = str(error)
        except (StandstillError, RunParkedError) as error:
            ended.trouble = str(error)
        await self.engine.finish(skips_max=SKIPS_AFTER_END_MAX)
        ended.runs = {run.id: await self._end_of(run) for run in await all_runs(self.store.inner)}
        return ended

    async def _end_of(self, run: Run) -> str:
        text = f"{run.workflow} {run.status.value}"
        if run.result is not None:
            blobs = await self.store.inner.get_blobs([run.result.blob]) if run.result.blob else {}
            text += f": {bytes(self.engine.unpack(run.result, blobs)).decode(errors='replace')}"
        if run.failure is not None:
            text += f": {run.failure.type}: {run.failure.message}"
        if run.reason:
            text += f" ({run.reason})"
        return text


async def _called(function: Callable[..., Any], *args: Any) -> None:
    answer = function(*args)
    if inspect.isawaitable(answer):
        await answer


async def _end_tasks(tasks: set[asyncio.Task[Any]]) -> None:
    """End what a dead process has left: no code of it may run when the next one is born."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=DYING_SECONDS_MAX)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # Whatever it was, nothing is left that could hear of it.
