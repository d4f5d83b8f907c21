"""The code of a workflow against a journal, with the pure `Execution` alone: no store, no worker, no clock.

Stricter than a worker, which parks a run only when the journal contradicts the code. Here the code must also end as the
journal says: with the same status, and the same result or failure.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import dropwhile
from typing import Any

import msgspec

from outlive._kernel.journal.event import (
    AnyEvent,
    AskReceived,
    CancelRequested,
    RunCancelled,
    RunClaimed,
    RunCreated,
    RunFailed,
    RunParked,
    RunPublished,
    RunReleased,
    RunResumed,
    RunSucceeded,
    SignalReceived,
)
from outlive._kernel.journal.fold import Fold
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Payload, RunStatus, child_id
from outlive._kernel.replay.command import Command, EndRun, Park, RunStep, WorkflowSpec
from outlive._kernel.replay.execution import Difference, Execution
from outlive._kernel.replay.feeding import feed, feed_again

SHOWN_MAX = 400
_UNMOVED = RunCreated | RunPublished | RunClaimed | RunReleased | RunParked | RunResumed
"""Events that a run can have although its code was never called, or not to any effect."""


class Contradiction(Exception):
    """The code says something else than the journal."""

    def __init__(self, place: int, reason: str) -> None:
        self.place, self.reason = place, reason
        super().__init__(f"event {place}: {reason}")


class Rerun:
    """One journal, fed from its first event on."""

    def __init__(
        self, root_id: str, *, resolve: Callable[[str, int], WorkflowSpec], unpack: Callable[[Payload], Stored]
    ) -> None:
        # A tree that made room for another one of its id was renamed; it was run under the name before the mark.
        root_id = root_id.partition("~")[0]
        self._execution = Execution(root_id, resolve=resolve, unpack=unpack)
        self._execution.compares_arguments = True
        self._fold = Fold(root_id)
        self._unpack = unpack
        self._endings: dict[int, EndRun] = {}
        self.differences: list[Difference] = []
        """The calls that the code made with other arguments than the journal has."""
        self.asked: set[tuple[int, str]] = set()
        """The steps that the code asked for, as (number of the run, call)."""

    def feed_all(self, events: list[AnyEvent]) -> None:
        """Feed a journal and judge its end.

        Raises:
            Contradiction: the code says something else.
        """
        # Some questions of the code are answered by what comes later in the journal.
        self._execution.look_ahead(events)
        try:
            closed_at = _closed_at(events)
            for place, event in enumerate(events):
                if place == closed_at and (0 not in self._endings or is_unmoved(events[:place])):
                    return  # The code never heard of its end.
                self._fold.apply(event)
                if self._execution.events in self._execution.ahead.undone and place:
                    self._endings.pop(event.run, None)  # If it ended that run, that was taken back.
                    feed_again(self._execution, event)
                    continue
                self._check_end(place, event)
                self._take(place, feed(self._execution, event))
            self._check_open_end(events)
        finally:
            self.differences = list(self._execution.differences.values())
            self._execution.drop()

    def _take(self, place: int, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Park):
                raise Contradiction(place, command.reason)
            if isinstance(command, EndRun):
                self._endings[command.run] = command
            elif isinstance(command, RunStep):
                self.asked.add((command.run, command.call))

    def _check_end(self, place: int, event: AnyEvent) -> None:
        if not isinstance(event, RunSucceeded | RunFailed):
            return
        ending = self._endings.get(event.run)
        if ending is None:
            return  # The execution has more to say about that.
        written, says = _told(event, self._unpack), _says(ending)
        if written != says:
            reason = f"run {child_id(self._fold.root_id, event.run)} ends otherwise"
            raise Contradiction(place, f"{reason}\n  journal: {_short(written)}\n  code:    {_short(says)}")

    def _check_open_end(self, events: list[AnyEvent]) -> None:
        """A journal that is open at its end is one of a run that waits or works; its code has not ended either.

        Unless no worker has moved it yet: creating and claiming a run write no more than that.
        """
        root = self._fold.root
        if root.status.is_terminal or root.status is RunStatus.PARKED or is_unmoved(events):
            return
        if 0 in self._endings:
            says = _short(_says(self._endings[0]))
            raise Contradiction(len(events) - 1, f"the run goes on here, and the code has ended\n  code:    {says}")


def is_unmoved(events: list[AnyEvent]) -> bool:
    """Whether no worker has moved a run yet. A generation begins with the signals and asks of the one before
    it."""
    first, *rest = events
    if isinstance(first, RunCreated) and first.generation:
        rest = list(dropwhile(lambda event: isinstance(event, SignalReceived | AskReceived), rest))
    return isinstance(first, _UNMOVED) and all(isinstance(it, _UNMOVED) for it in rest)


def _closed_at(events: list[AnyEvent]) -> int | None:
    """Where a tree was ended from outside, if it was: it was parked then, or its code was not asked to stop."""
    if not isinstance(events[-1], RunCancelled) or events[-1].run:
        return None
    at = len(events)
    while isinstance(events[at - 1], RunCancelled):
        at -= 1
    was_asked = any(isinstance(event, CancelRequested) and not event.run for event in events[:at])
    return at if isinstance(events[at - 1], RunParked) or not was_asked else None


def _told(event: RunSucceeded | RunFailed, unpack: Callable[[Payload], Stored]) -> tuple[str, Any]:
    if isinstance(event, RunSucceeded):
        return RunStatus.SUCCEEDED.value, msgspec.json.decode(bytes(unpack(event.result)))
    return RunStatus.FAILED.value, f"{event.failure.class_name}: {event.failure.message}"


def _says(ending: EndRun) -> tuple[str, Any]:
    if ending.result is not None:
        return ending.status.value, msgspec.json.decode(ending.result)
    failure = ending.failure
    return ending.status.value, ending.reason if failure is None else f"{failure.class_name}: {failure.message}"


def _short(ending: tuple[str, Any]) -> str:
    text = f"{ending[0]}: {ending[1]!r}"
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."
