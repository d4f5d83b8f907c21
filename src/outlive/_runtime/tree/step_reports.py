"""What a running step says before it ends: how far it came, and what it shows of its run.

A step says both from any thread and as often as it likes. What it said while something earlier is on its way to
the disk waits and is merged, so that a chatty step costs one event for each commit and no more; what it said last is
written with its outcome at the latest.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from outlive._journal.event import RunPublished, StepProgressed
from outlive._replay.command import RunStep
from outlive._replay.deciding import merge_published
from outlive._runtime.clock import Clock
from outlive._runtime.tree.attempt import Attempt
from outlive._runtime.tree.live import LiveTree
from outlive._runtime.tree.phase import TreePhase


class StepReports:
    """Makes facts of what running steps say."""

    def __init__(
        self,
        clock: Clock,
        *,
        guarding: Callable[[LiveTree], AbstractContextManager[None]],
        settle: Callable[[LiveTree], None],
        is_stopping: Callable[[], bool],
    ) -> None:
        self._clock = clock
        self._guarding = guarding
        self._settle = settle
        self._is_stopping = is_stopping

    def save_progress(self, live: LiveTree, attempt: Attempt) -> None:
        """Write how far a step came; once that is durable, how much further it came meanwhile."""
        command, data = attempt.command, attempt.progress
        # The step may have ended, or been given up, while its last progress waited for its turn.
        if data is None or not self._may_save(live, command):
            return
        attempt.progress, attempt.is_saving = None, True
        with self._guarding(live):
            payload = live.pack(data, f"the progress of step {command.call}")
            live.happen(StepProgressed(at=self._clock.now(), run=command.run, call=command.call, progress=payload))

        def saved() -> None:
            attempt.is_saving = False
            self.save_progress(live, attempt)

        live.add_effect(saved)
        self._settle(live)

    def save_published(self, live: LiveTree, attempt: Attempt) -> None:
        """Write what a step has published; once that is durable, what it has published meanwhile."""
        if not self._may_save(live, attempt.command):
            return
        with self._guarding(live):
            if not publish_pending(live, attempt, at=self._clock.now()):
                return

        def saved() -> None:
            attempt.is_publishing = False
            self.save_published(live, attempt)

        attempt.is_publishing = True
        live.add_effect(saved)
        self._settle(live)

    def _may_save(self, live: LiveTree, command: RunStep) -> bool:
        is_moving = live.phase is TreePhase.MOVING and not self._is_stopping()
        return is_moving and (command.run, command.call) in live.execution.calls


def publish_pending(live: LiveTree, attempt: Attempt, *, at: int) -> bool:
    """Make a fact of what a step has published since the last one; whether there was anything new."""
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
