"""When the journal and the code contradict each other: a diff that a person can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from outlive._journal.event import AnyEvent
from outlive._model import Wait, WaitKind
from outlive._replay.frame import Frame
from outlive._replay.loop import Timer
from outlive.errors import DivergenceError, OutliveError, UndoFailedError

ASKED_SHOWN_MAX = 8


class Replaying(Protocol):
    """What a diff needs to know of an execution."""

    root_id: str
    events: int
    frames: dict[int, Frame]

    @property
    def calls(self) -> Mapping[tuple[int, str], object]:
        """Durable calls without an answer."""

    @property
    def timers(self) -> Iterable[Timer]:
        """Timers that are waited for."""

    def waits(self) -> tuple[Wait, ...]:
        """Everything that is waited for."""


def unasked(execution: Replaying, event: AnyEvent, told: str) -> DivergenceError:
    """The journal answers something that the code did not ask for."""
    return contradiction(execution, event, told, _describe_code(execution))


def other_arguments(execution: Replaying, event: AnyEvent, name: str) -> DivergenceError:
    """The code asks for the same thing with other arguments."""
    return contradiction(execution, event, f"{name} with the arguments of that time", f"{name} with other arguments")


def contradiction(execution: Replaying, event: AnyEvent, journal: str, code: str) -> DivergenceError:
    """What the journal has, what the code asked, at which event, in which version."""
    definition = _definition(execution, event.run)
    return DivergenceError(definition=definition, seq=execution.events, journal=journal, code=code)


def reason_of(execution: Replaying, error: OutliveError, run: int) -> str:
    """Why a run is parked: whatever it is, a person must see in which code and at which event."""
    if isinstance(error, DivergenceError | UndoFailedError):
        return str(error)
    return f"{_definition(execution, run)} stopped at event {execution.events}: {error}"


def _definition(execution: Replaying, run: int) -> str:
    frame = execution.frames.get(run) or execution.frames.get(0)
    return f"{frame.spec.name}@{frame.spec.version}" if frame else f"run {execution.root_id}"


def _describe_code(execution: Replaying) -> str:
    asked = [str(call) for call in execution.calls.values()]
    asked += [f"timer {timer.name}" for timer in execution.timers]
    asked += [f"signal {wait.name}" for wait in execution.waits() if wait.kind is WaitKind.SIGNAL]
    asked += [f"approval {wait.name}" for wait in execution.waits() if wait.kind is WaitKind.APPROVAL]
    asked += [f"the end of {wait.name}" for wait in execution.waits() if wait.kind is WaitKind.CHILD]
    if len(asked) > ASKED_SHOWN_MAX:
        asked = [*asked[:ASKED_SHOWN_MAX], f"and {len(asked) - ASKED_SHOWN_MAX} more"]
    return "waits for " + ", ".join(asked) if asked else "has ended"
