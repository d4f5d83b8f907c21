"""How steps, and what is made of them, fail, and how a step is refused before it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outlive.errors.base import (
    MisuseError,
    OutliveError,
    UnfitValueError,
)

UNDO_FAILED = "undo failed: "
"""How the reason of a run begins that is parked in the middle of a roll-back."""


class StepFailedError(OutliveError):
    """A step failed for good; its own exception class is not registered with the step.

    Carries what the journal has: `type_name`, `message`, `attributes`, `traceback_text`, `attempts`. `step` is empty
    for an exception that no step raised: the cause of another one, or what the workflow itself raised.
    """

    def __init__(
        self,
        message: str,
        *,
        step: str = "",
        type_name: str = "",
        attributes: dict[str, Any] | None = None,
        traceback_text: str = "",
        attempts: int = 1,
    ) -> None:
        self.step, self.type_name, self.message = step, type_name, message
        self.attributes = attributes or {}
        self.traceback_text, self.attempts = traceback_text, attempts
        super().__init__(f"{step}: {type_name}: {message}" if step else f"{type_name}: {message}")


class StepTimeoutError(OutliveError, TimeoutError):
    """One attempt of a step ran longer than the step allows."""

    def __init__(self, step: str, seconds: float) -> None:
        self.step, self.seconds = step, seconds
        super().__init__(f"step {step} did not end within its timeout of {seconds:g} s")


class HeartbeatTimeoutError(StepTimeoutError):
    """One attempt of a step gave no sign of life for as long as its `heartbeat_timeout`."""

    def __init__(self, step: str, seconds: float) -> None:
        self.step, self.seconds = step, seconds
        OutliveError.__init__(self, f"step {step} has not called heartbeat() for {seconds:g} s")


class SagaClosedError(MisuseError):
    """Something that can be undone was asked for in a saga that rolls back, or is over."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} cannot be begun: the saga around it is rolled back or was left, so it would not be undone; "
            f"let the task end when it is cancelled, or begin a saga of its own"
        )


class UndoFailedError(OutliveError):
    """An undo has used up its attempts; the run is parked in the middle of its roll-back."""

    NAMES_MAX = 20

    def __init__(
        self,
        *,
        undo: str,
        step: str,
        error: str,
        attempts: int,
        undone: Sequence[str],
        left: Sequence[str],
        resuming: str = "it tries this undo again and goes on with the rest",
    ) -> None:
        self.undo, self.step, self.error, self.attempts = undo, step, error, attempts
        self.undone, self.left = list(undone), list(left)
        tried = f" after {attempts} attempts" if attempts > 1 else ""
        super().__init__(
            f"{UNDO_FAILED}{undo} of {step}{tried}: {error}\n"
            f"{self._how_far()}"
            f"remove the cause, then resume the run: {resuming}; cancelling it leaves the rest as it is"
        )

    def _how_far(self) -> str:
        return f"  undone: {self._names(self.undone)}\n  left:   {self._names(self.left)}\n"

    def _names(self, names: Sequence[str]) -> str:
        """The names, newest first, but not thousands of them."""
        more = [f"and {len(names) - self.NAMES_MAX} more"] if len(names) > self.NAMES_MAX else []
        return ", ".join([*names[: self.NAMES_MAX], *more]) or "nothing"


class UndoTimeoutError(UndoFailedError):
    """A roll-back has not ended within its `undo_timeout`; the run is parked in the middle of it.

    Carries `seconds`, the bound; `waited`, the steps in flight that it still waited for; `undone` and `left`.
    """

    def __init__(self, seconds: float, *, waited: Sequence[str], undone: Sequence[str], left: Sequence[str]) -> None:
        self.seconds, self.waited = seconds, list(waited)
        self.undo, self.step, self.attempts = "", left[0] if left else "", 0
        self.undone, self.left = list(undone), list(left)
        self.error = f"the roll-back has not ended within its undo_timeout of {seconds:g} s"
        busy = f"it waited for {self._names(self.waited)} to end" if waited else f"it was busy with {self.step}"
        OutliveError.__init__(
            self,
            f"{UNDO_FAILED}{self.error}; {busy}\n"
            f"{self._how_far()}"
            f"remove the cause, then resume the run: it goes on with what is left, and has as much time again; "
            f"cancelling it leaves the rest as it is",
        )


class ToleranceExceededError(OutliveError):
    """More items of an `outlive.map` failed than were tolerated."""

    def __init__(self, errors: Mapping[int, BaseException], tolerated: str) -> None:
        self.errors, self.tolerated = dict(sorted(errors.items())), tolerated
        first = next(iter(self.errors))
        error = self.errors[first]
        super().__init__(
            f"{len(self.errors)} items failed, and {tolerated} were tolerated; the first of them is item {first}: "
            f"{type(error).__qualname__}: {error}"
        )


class FlowStepError(UnfitValueError):
    """A step of a flow cannot be called with what the document and the results of other steps give it."""

    def __init__(self, step: str, reason: str) -> None:
        self.step, self.reason = step, reason
        super().__init__(f"step {step}: {reason}")


class StepInterruptedError(OutliveError):
    """A step that may be called only once was begun, and it is not known how it ended; it is not called again."""

    def __init__(self, step: str, reason: str, idempotency_key: str) -> None:
        self.step, self.reason, self.idempotency_key = step, reason, idempotency_key
        super().__init__(
            f"step {step} was begun and {reason}: it may have had its effect or not, and is not called again; find out "
            f"which (its idempotency key was {idempotency_key}) and decide in the workflow"
        )


class StepSkippedError(OutliveError):
    """A person let the run go on without this step, and gave no result for it."""

    def __init__(self, step: str) -> None:
        self.step = step
        super().__init__(f"step {step} was skipped by a person: it may have had its effect or not, and has no result")


class ProcessDiedError(OutliveError):
    """The process of a step ended in the middle of it, or could not begin; no other step is concerned."""

    def __init__(self, step: str, reason: str) -> None:
        self.step, self.reason = step, reason
        super().__init__(
            f"the process of step {step} {reason}; give the step a retry= if another attempt may go better"
        )


class ResourceError(OutliveError):
    """A step was not called: a resource that it uses could not be set up, or there is no engine that could do it.

    What the set-up raised is its cause, and decides whether the retry policy of the step allows another attempt.
    """

    def __init__(self, resource: str, reason: str) -> None:
        self.resource, self.reason = resource, reason
        super().__init__(f"resource {resource} {reason}")


class CircuitOpenError(OutliveError):
    """A step was not called: its breaker is open, and says so at once (`when_open="fail"`)."""

    def __init__(self, name: str, retry_after: float) -> None:
        self.name, self.retry_after = name, retry_after
        super().__init__(
            f"breaker {name} is open: what it protects has failed too often; the next call may be tried in "
            f"{retry_after:g} s. Catch this, or let steps wait with when_open='wait'"
        )


class RateLimitedError(OutliveError):
    """A step was not called: its rate limit has no room now, and says so at once (`when_full="fail"`)."""

    def __init__(self, name: str, tier: str, retry_after: float) -> None:
        self.name, self.tier, self.retry_after = name, tier, retry_after
        super().__init__(
            f"rate limit {name} is full: its tier of {tier} has room again in {retry_after:g} s. Catch this, or let "
            f"steps wait with when_full='wait'"
        )
