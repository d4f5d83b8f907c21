"""Circuit breakers: whether what a step calls is worth a call, as a pure state machine.

    closed ---failures in a row---> open ---reset seconds---> half open ---a trial succeeds---> closed
                                      ^                           |
                                      +----a trial fails, or is not renewed

A caller is given a permit, and its end is recorded. Every change of phase is a new *epoch*, and a
permit knows the epoch it was given in: an outcome that comes late, from before the breaker opened, or of a trial that
has lapsed, says nothing about now and is ignored.

The end of a call whose process dies is never recorded. While the breaker is closed that does not matter. A trial has a
deadline that is moved on while it runs; when it has passed, the trial has failed at that instant.

All instants are microseconds since 1970 UTC.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from outlive._kernel.model import given
from outlive._kernel.model.instant import MICROSECONDS

BREAKER_CELLS = "breaker/"
"""The prefix of the names of cells with shared breakers."""
SPACING = 50_000
"""Refused calls come back one after the other, this far apart, and so find out how the first of them went."""
TRIAL_LOOK = MICROSECONDS
"""How soon a call that finds all trials taken looks again."""
NEVER = 1 << 62


class Phase(enum.Enum):
    """How a breaker treats calls."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half open"


class BreakerState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a breaker."""

    phase: Phase = Phase.CLOSED
    epoch: int = 0
    failures: int = 0
    """In a row, while it is closed."""
    until_at: int = 0
    """While it is open."""
    refused: int = 0
    """How many calls were refused since it opened."""
    trials: dict[str, int] = {}
    """While it is half open: the permits under way, and when each counts as failed if it is not renewed."""


def left_of_breaker(data: bytes, now_at: int) -> bytes | None:
    """The cell of a breaker, unless it says no more than if it were not there. A breaker that has ever opened does: its
    epoch tells answers that come late from others."""
    try:
        return None if msgspec.json.decode(data, type=BreakerState) == BreakerState() else data
    except msgspec.MsgspecError:
        return data


class Permit(NamedTuple):
    """The call may be made."""

    id: str
    epoch: int
    is_trial: bool


class BreakerRefusal(NamedTuple):
    """The call may not be made."""

    at: int
    """When it is worth asking again."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """Stops calling what fails again and again, and tries carefully whether it works again.

    Args:
        name: steps with breakers of the same name share one.
        failures: how many in a row open it.
        reset: seconds, or a timedelta, for which it stays open.
        trials: how many calls may be under way when it tries again; the first that succeeds closes it.
        on: which exceptions count; any other means that there was an answer. A timeout always counts.
        shared: whether all workers of a store share it, or each engine has its own.
        when_open: whether a step waits, durably, or fails with `CircuitOpenError`.
    """

    name: str
    failures: int
    reset: float
    trials: int
    on: tuple[type[BaseException], ...]
    shared: bool
    when_open: Literal["wait", "fail"]

    def __init__(
        self,
        name: str,
        *,
        failures: int = 5,
        reset: float | timedelta = 30,
        trials: int = 1,
        on: tuple[type[BaseException], ...] = (Exception,),
        shared: bool = False,
        when_open: Literal["wait", "fail"] = "wait",
    ) -> None:
        where = f"Breaker({name!r})"
        given.keep(
            self,
            name=given.text("Breaker", "name", name, like="bank"),
            failures=given.whole(where, "failures", failures),
            reset=given.seconds(where, "reset", reset),
            trials=given.whole(where, "trials", trials),
            on=given.exceptions(where, "on", on),
            shared=given.flag(where, "shared", shared),
            when_open=given.one_of(where, "when_open", when_open, ("wait", "fail")),
        )

    @property
    def _reset(self) -> int:
        return round(self.reset * MICROSECONDS)


def ask_breaker(
    breaker: Breaker, state: BreakerState, *, permit_id: str, now_at: int, lapse: int | None = None
) -> tuple[BreakerState, Permit | BreakerRefusal]:
    """A permit, or when to ask again. Asking twice with one id is asking once.

    A trial counts as failed if it is not renewed for `lapse` microseconds; without `lapse` it never does.
    """
    state = settled(breaker, state, now_at=now_at)
    match state.phase:
        case Phase.CLOSED:
            return state, Permit(permit_id, state.epoch, is_trial=False)
        case Phase.OPEN:
            at = state.until_at + min(state.refused * SPACING, breaker._reset)
            return replace(state, refused=state.refused + 1), BreakerRefusal(at)
        case Phase.HALF_OPEN:
            if permit_id not in state.trials and len(state.trials) >= breaker.trials:
                return state, BreakerRefusal(now_at + min(TRIAL_LOOK, breaker._reset))
            trials = state.trials | {permit_id: NEVER if lapse is None else now_at + lapse}
            return replace(state, trials=trials), Permit(permit_id, state.epoch, is_trial=True)


def record_call(breaker: Breaker, state: BreakerState, permit: Permit, *, is_good: bool, now_at: int) -> BreakerState:
    """The state after a call has ended. A call of an earlier epoch is ignored."""
    state = settled(breaker, state, now_at=now_at)
    if permit.epoch != state.epoch:
        return state
    if is_good:
        if state.phase is Phase.HALF_OPEN:
            return BreakerState(Phase.CLOSED, state.epoch + 1)
        return replace(state, failures=0)
    if state.phase is Phase.CLOSED and state.failures + 1 < breaker.failures:
        return replace(state, failures=state.failures + 1)
    return _opened(breaker, state, now_at)


def withdraw_permit(breaker: Breaker, state: BreakerState, permit_id: str, *, now_at: int) -> BreakerState:
    """The call was not made, or it will not be known how it went: that says nothing about what is called."""
    state = settled(breaker, state, now_at=now_at)
    left = {id: until_at for id, until_at in state.trials.items() if id != permit_id}
    return state if len(left) == len(state.trials) else replace(state, trials=left)


def renew_trial(breaker: Breaker, state: BreakerState, permit: Permit, *, now_at: int, lapse: int) -> BreakerState:
    """A trial is still under way."""
    state = settled(breaker, state, now_at=now_at)
    if permit.id not in state.trials:
        return state
    return replace(state, trials=state.trials | {permit.id: now_at + lapse})


def settled(breaker: Breaker, state: BreakerState, *, now_at: int) -> BreakerState:
    """The state after time has passed: an open breaker becomes half open, and a trial that was never settled
    lapses."""
    while True:
        if state.phase is Phase.OPEN and state.until_at <= now_at:
            state = BreakerState(Phase.HALF_OPEN, state.epoch + 1)
        if state.phase is not Phase.HALF_OPEN or min(state.trials.values(), default=NEVER) > now_at:
            return state
        state = _opened(breaker, state, min(state.trials.values()))


def _opened(breaker: Breaker, state: BreakerState, at: int) -> BreakerState:
    return BreakerState(Phase.OPEN, state.epoch + 1, until_at=at + breaker._reset)
