"""The reports of a running step: its progress, what it publishes, and its outcome.

A step reports the first two from any thread and as often as it likes. Reports that come while an earlier one is being
written wait and are merged, so that a step costs at most one event of each kind for each commit; what it published last
is written with its outcome at the latest.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Any, Protocol

from outlive._kernel.journal.event import AnyEvent, RunPublished, StepEndedLate, StepProgressed
from outlive._kernel.model import Failure
from outlive._kernel.replay.command import RunStep
from outlive._kernel.replay.deciding import merge_published
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.failures import describe
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.runtime.tree.phase import TreePhase
from outlive.telemetry import log

StepOutcome = tuple[LiveTree, Attempt, bytes | None, AnyEvent | None]
"""How an attempt ended: the encoded result of a success, or the event of a failure."""


class TreeWorker(Protocol):
    """The worker, as far as it matters here."""

    @property
    def is_stopping(self) -> bool:
        """Whether no more reports are written."""

    def guarding(self, live: LiveTree) -> AbstractContextManager[None]:
        """Park a tree if the code inside raises."""

    def settle(self, live: LiveTree) -> None:
        """Decide what a tree does next."""

    def take_outcomes(self, outcomes: list[StepOutcome]) -> None:
        """Go on with the trees whose attempts have ended."""


class StepReports:
    """Makes events of what running steps report, and brings their outcomes to the worker from a plain callback."""

    def __init__(self, clock: Clock, worker: TreeWorker) -> None:
        self._clock = clock
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self.outcomes: list[StepOutcome] = []
        """Outcomes of attempts whose runs have not got them yet."""

    def ended(self, live: LiveTree, attempt: Attempt, result: bytes | None, failure: AnyEvent | None) -> None:
        """An attempt has ended; the outcomes of one turn of the event loop go on together."""
        if not self.outcomes:
            self._loop.call_soon(self._bring_outcomes)
        self.outcomes.append((live, attempt, result, failure))

    def _bring_outcomes(self) -> None:
        outcomes, self.outcomes = self.outcomes, []
        self._worker.take_outcomes(outcomes)

    def ended_late(self, live: LiveTree, attempt: Attempt, result: bytes | None, failure: Failure | None) -> None:
        """An attempt has ended that its run had given up. What the run got instead is recorded first."""
        self._loop.call_soon(self._record_late, live, attempt, result, failure)

    def _record_late(self, live: LiveTree, attempt: Attempt, result: bytes | None, failure: Failure | None) -> None:
        command = attempt.command
        live.catch_up()
        is_ours = live.phase is TreePhase.MOVING and not self._worker.is_stopping
        if not is_ours or command.run not in live.fold.runs:
            text = "attempt %d of step %s of run %s ended after it was given up, and its run is not in motion here: %s"
            how = "it returned" if failure is None else f"it raised {failure.type}"
            log.info(text, command.attempt, command.call, live.id, f"{how}, and that is not recorded")
            return
        with self._worker.guarding(live):
            live.happen(late_end(live, command, result, failure, at=self._clock.now()))
        self._worker.settle(live)

    def progressed(self, live: LiveTree, attempt: Attempt, data: bytes) -> None:
        """A step has reported progress."""
        # A thread that runs on after its timeout is ignored: the next attempt may have come further.
        if attempt.is_wanted and not attempt.is_timed_out:
            attempt.progress = data
            if not attempt.is_saving:
                self._save_progress(live, attempt)

    def _save_progress(self, live: LiveTree, attempt: Attempt) -> None:
        """Record the progress of a step; once that is durable, what it has reported meanwhile."""
        command, data = attempt.command, attempt.progress
        # The step may have ended, or been cancelled, while its last progress waited.
        if data is None or not self._may_save(live, command):
            return
        attempt.progress, attempt.is_saving = None, True
        with self._worker.guarding(live):
            payload = live.pack(data, f"the progress of step {command.call}")
            live.happen(StepProgressed(at=self._clock.now(), run=command.run, call=command.call, progress=payload))

        def saved() -> None:
            attempt.is_saving = False
            self._save_progress(live, attempt)

        live.add_effect(saved)
        self._worker.settle(live)

    def published(self, live: LiveTree, attempt: Attempt, fields: dict[str, Any]) -> None:
        """A step has published these fields."""
        if attempt.is_wanted and not attempt.is_timed_out:
            attempt.unpublished |= fields
            if not attempt.is_publishing:
                self._save_published(live, attempt)

    def _save_published(self, live: LiveTree, attempt: Attempt) -> None:
        """Record what a step has published; once that is durable, what it has published meanwhile."""
        if not self._may_save(live, attempt.command):
            return
        with self._worker.guarding(live):
            if not publish_pending(live, attempt, at=self._clock.now()):
                return

        def saved() -> None:
            attempt.is_publishing = False
            self._save_published(live, attempt)

        attempt.is_publishing = True
        live.add_effect(saved)
        self._worker.settle(live)

    def _may_save(self, live: LiveTree, command: RunStep) -> bool:
        live.catch_up()
        is_moving = live.phase is TreePhase.MOVING and not self._worker.is_stopping
        return is_moving and (command.run, command.call) in live.execution.calls


def publish_pending(live: LiveTree, attempt: Attempt, *, at: int) -> bool:
    """Record what a step has published since the last time; whether there was anything new."""
    fields, attempt.unpublished = attempt.unpublished, {}
    command = attempt.command
    frame = live.execution.frames.get(command.run)
    if not fields or frame is None:
        return False
    merged = merge_published(frame.published, fields)
    if merged == frame.published:
        return False
    payload = live.pack(merged, f"what step {command.call} published")
    live.happen(RunPublished(at=at, run=command.run, payload=payload))
    return True


def late_end(
    live: LiveTree, command: RunStep, result: bytes | None, failure: Failure | None, *, at: int
) -> StepEndedLate:
    """The event of an attempt that has ended late, for the next change of its tree."""
    payload = None
    if result is not None:
        try:
            payload = live.pack(result, f"late result of step {command.call}")
        except Exception as error:  # Too large, or a payload codec of the user's that raises.
            failure = describe(error)
    return StepEndedLate(
        at=at, run=command.run, call=command.call, attempt=command.attempt, result=payload, failure=failure
    )
