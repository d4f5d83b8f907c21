"""Whether another attempt follows one that has failed, and when.

The policy decides, and functions of the user that it holds: `when` and `delay`. One that raises, or answers with
something else than it should, costs no run: an attempt that `when` cannot judge is the last one, a delay that `delay`
cannot name is the usual one, and both are logged and noted with the failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from outlive._interrupts import came_by_signal
from outlive._kernel.journal.failure import OWN_ERRORS, exception_of
from outlive._kernel.model import Retry
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.policy import delay_seconds, is_last, named_seconds
from outlive._kernel.replay.command import RunStep
from outlive._kernel.runtime.failures import StepRaised, is_retryable
from outlive.errors import InvalidArgumentError, ResourceError, StepFailedError
from outlive.telemetry import log


class Following(NamedTuple):
    """The decision about the attempt after a failed one."""

    at: int | None = None
    """When the next attempt is due; None if there is none."""
    note: str = ""
    """A note about this for people, beside the failure."""


def next_attempt(
    retry: Retry, error: BaseException, command: RunStep, *, at: int, first_at: int, spread: Callable[[], float]
) -> Following:
    """Decide about the attempt after the attempt of `command` that failed at `at` with `error`."""
    if is_last(retry, command.attempt) or not is_retryable(error, retry.on, retry.not_on):
        return Following()
    seen = _as_seen(error, command)
    if retry.when is not None:
        try:
            is_worth_it = retry.when(seen)
        except BaseException as broken:  # The user's code may raise anything.
            if came_by_signal(broken):
                raise
            return Following(None, _noted(command, f"Retry.when raised {_text(broken)}", "it is not tried again"))
        if not is_worth_it:
            return Following()
    seconds, note = _delay(retry, seen, command, spread())
    retry_at = at + round(seconds * MICROSECONDS)
    if retry.elapsed_max is not None and retry_at - first_at > retry.elapsed_max * MICROSECONDS:
        late = f"the next attempt would begin more than elapsed_max={retry.elapsed_max:g} s after the first"
        return Following(None, "; ".join(filter(None, (note, f"it is not tried again: {late}"))))
    return Following(retry_at, note)


def _delay(retry: Retry, error: BaseException, command: RunStep, spread: float) -> tuple[float, str]:
    """Seconds until the next attempt, and a note if it asked for another delay."""
    usual = delay_seconds(retry, command.attempt, spread)
    named: Any = None
    whose = "Retry.delay returned"
    try:
        if callable(retry.delay):
            named = retry.delay(error, command.attempt)
        else:
            whose = "the exception has retry_after ="
            named = _retry_after(error)
        return (usual, "") if named is None else (named_seconds(retry, named, spread), "")
    except InvalidArgumentError:
        what = f"{whose} {_text(named)}, which is neither a number of seconds nor a timedelta"
    except BaseException as broken:  # The user's code may raise anything.
        if came_by_signal(broken):
            raise
        what = f"Retry.delay raised {_text(broken)}"
    return usual, _noted(command, what, f"the next attempt comes after {usual:g} s")


def _retry_after(error: BaseException) -> Any:
    if isinstance(error, StepFailedError):  # From another process, and of a class that is not registered.
        return error.attributes.get("retry_after")
    return getattr(error, "retry_after", None)


def _as_seen(error: BaseException, command: RunStep) -> BaseException:
    """The exception for functions of the user: that of a resource is what its set-up raised, as for `on`. From another
    process comes only data, so it is as the workflow would get it."""
    while isinstance(error, ResourceError) and error.__cause__ is not None:
        error = error.__cause__
    if not isinstance(error, StepRaised):
        return error
    step = command.step
    return exception_of(
        error.failure, registered=(*step.registered, *OWN_ERRORS), step=step.name, attempts=command.attempt
    )


def _noted(command: RunStep, what: str, so: str) -> str:
    log.warning("step %s: %s; %s", command.call, what, so)
    return f"{what}; {so}"


def _text(value: object) -> str:
    try:
        text = f"{type(value).__qualname__}: {value}" if isinstance(value, BaseException) else repr(value)
    except Exception:
        text = f"something of {type(value).__qualname__}"
    return text[:200]
