"""What a workflow may not do, and code that contradicts its journal."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType

from outlive.errors.base import OutliveError


class NotDurableError(OutliveError, RuntimeError):
    """A workflow asked its loop for something that no journal can replay. `where` is the line of its code."""

    def __init__(self, what: str, trace: TracebackType | None = None) -> None:
        self.what = what
        self.where = _where(_stack(sys._getframe(1)) if trace is None else _frames(trace))
        at = f" at {self.where}" if self.where else ""
        super().__init__(
            f"{what} is not durable and cannot be used in a workflow{at}; do this in a step (@outlive.step) "
            f"and await the step"
        )


def _stack(frame: FrameType | None) -> list[tuple[FrameType, int]]:
    """The calls that led here in this turn of a run's loop, outermost first."""
    found: list[tuple[FrameType, int]] = []
    while frame is not None and (_module(frame), frame.f_code.co_name) != ("outlive._replay.loop", "drain"):
        found.append((frame, frame.f_lineno))
        frame = frame.f_back
    return found[::-1] if frame is not None else []


def _frames(trace: TracebackType | None) -> list[tuple[FrameType, int]]:
    found: list[tuple[FrameType, int]] = []
    while trace is not None:
        found.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _where(frames: list[tuple[FrameType, int]]) -> str:
    """The last line of the user's code among these: of the package that the first frame which is not ours lies in.

    Empty if that is the standard library: a task of nothing but its code does not show who made it.
    """
    roots = [_module(frame).partition(".")[0] for frame, _ in frames]
    user = next((root for root in roots if root != "outlive"), "")
    if not user or user in sys.stdlib_module_names:
        return ""
    frame, line = next(each for each, root in zip(reversed(frames), reversed(roots), strict=True) if root == user)
    return f"{frame.f_code.co_filename}:{line} in {frame.f_code.co_name}"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


class NotInRunError(OutliveError, RuntimeError):
    """This name means something only inside a running workflow or step."""

    def __init__(self, name: str, place: str) -> None:
        self.name, self.place = name, place
        decorators = " or ".join(f"@outlive.{kind}" for kind in ("workflow", "step") if kind in place)
        super().__init__(
            f"outlive.{name}() was called outside {place}; call it in a function decorated with {decorators}, in a run "
            f"that an engine runs"
        )


class DivergenceError(OutliveError):
    """The code asks for something that the journal contradicts; the run is parked, never failed."""

    def __init__(self, *, definition: str, seq: int, journal: str, code: str) -> None:
        self.definition, self.seq, self.journal, self.code = definition, seq, journal, code
        super().__init__(
            f"the code of {definition} no longer matches the journal at event {seq}\n"
            f"  - journal: {journal}\n"
            f"  + code:    {code}\n"
            f"deploy the code that wrote this journal, or give the new code another version, then resume the run"
        )


class StuckError(OutliveError):
    """The workflow waits for something that no event can ever bring."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"the workflow waits at {where} for something that no journal event can bring (an Event that "
            f"nobody sets, a future of another loop, ...); wait for a step, a timer or a signal instead"
        )


class RunawayError(OutliveError):
    """The workflow spins without waiting for anything durable."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        super().__init__(
            f"the workflow took {turns:,} turns of its loop without waiting for anything durable "
            f"(turns_per_event_max); put the busy work into a step"
        )


class RunDropped(BaseException):
    """A dropped run's `finally` block asked for something; nothing of it may happen."""
