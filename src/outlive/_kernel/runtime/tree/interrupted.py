"""Which steps the end of a run interrupts: its last event names them."""

from __future__ import annotations

from typing import Protocol

from outlive._kernel.journal.fold import Fold
from outlive._kernel.model.policy import NO_RETRY
from outlive._kernel.model.under_way import INTERRUPTED_MAX, Interrupted
from outlive._kernel.model.worker import name_in
from outlive._kernel.replay.command import CancelStep, RunStep
from outlive._kernel.replay.execution import Execution
from outlive._kernel.runtime.tree.attempt import Attempt


class InterruptedTree(Protocol):
    """A tree that moves, as far as it matters here."""

    attempts: dict[tuple[int, str], Attempt]
    execution: Execution
    fold: Fold
    interrupted: tuple[Interrupted, ...]
    retries: dict[tuple[int, str], RunStep]


def interrupted_by(command: CancelStep, live: InterruptedTree) -> tuple[Interrupted, ...]:
    """The step that is cancelled because its run is to end, if it runs or waits for its next attempt."""
    if not _is_to_end(command, live):
        return ()
    attempt = live.attempts.get((command.run, command.call))
    waiting = live.retries.get((command.run, command.call))
    if waiting is not None:
        return (Interrupted(call=command.call, run=command.run, attempt=waiting.attempt),)
    if attempt is None or not attempt.began_at:
        return ()
    retry = attempt.command.options.retry or NO_RETRY
    step = Interrupted(
        call=command.call,
        run=command.run,
        attempt=attempt.command.attempt,
        attempts_max=retry.attempts,
        since_at=attempt.began_at,
        worker=name_in(live.fold.root.owner),
    )
    return (step,)


def interrupted_before(command: CancelStep, live: InterruptedTree) -> tuple[Interrupted, ...]:
    """The step that a cancel interrupted, as a replay knows it: the call alone, because the journal has no event of an
    attempt that did not end."""
    return (Interrupted(call=command.call, run=command.run),) if _is_to_end(command, live) else ()


def _is_to_end(command: CancelStep, live: InterruptedTree) -> bool:
    frame = live.execution.frames.get(command.run)
    is_stopped = frame is not None and (frame.cancel_reason is not None or frame.is_timed_out)
    return is_stopped and len(live.interrupted) < INTERRUPTED_MAX
