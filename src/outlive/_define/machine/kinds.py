"""The kinds of states: how each is run until it is left."""

from __future__ import annotations

import asyncio
import enum
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from inspect import iscoroutinefunction
from math import isfinite
from typing import Any
from zlib import crc32

import msgspec
from msgspec import UNSET

from outlive._define.inside import sleep_until
from outlive._define.machine.answer import Answer
from outlive._define.machine.asking import Function, ask, data_of, park, readable
from outlive._define.machine.place import Place
from outlive._define.machine.wire import OUTCOME, Outcome
from outlive._define.resources import count_taken
from outlive._journal.event import StateLeft
from outlive._journal.value import ValueCodec
from outlive._model.payload import NO_PAYLOAD
from outlive._replay.ask import current_execution
from outlive._replay.command import StepSpec
from outlive._replay.frame import SCOPE
from outlive.errors import StateResultError, UnserialisableError

Delay = float | timedelta | datetime


class Kind(ABC):
    """One state of a machine."""

    word = "state"
    """What people call it."""
    is_pure = False
    """Whether it leaves no event: a router."""
    rests = False
    """Whether it says itself where a snapshot may be taken."""
    undo: StepSpec | None = None
    """What takes its effect back."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    async def leave(self, data: msgspec.Raw, place: Place) -> Outcome:
        """Run it until it is left."""

    @property
    @abstractmethod
    def targets(self) -> frozenset[str] | None:
        """The states that it can go to; None if only its code knows."""

    @property
    def functions(self) -> tuple[Function, ...]:
        """The code of the user in it, for who wants to guess where it goes."""
        return ()

    def problems(self) -> list[str]:
        """What is wrong with it."""
        return []


def record_left(name: str, outcome: Outcome) -> Outcome:
    """Write down that a state was left; the same for one that is a step is its outcome."""
    execution = current_execution()
    if execution is not None:
        execution.refuse_if_dropped()
        scope = SCOPE.get()
        data = OUTCOME.encode(outcome, name)
        call = scope.call(f"@state/{name}")
        fact = StateLeft(at=0, run=scope.frame.number, call=call, payload=NO_PAYLOAD, digest=crc32(data))
        execution.record(fact, data)
    return outcome


class StepState(Kind):
    """A step: its outcome is the transition. With a wait it is a poll, with a cursor a stepped state."""

    rests = True

    def __init__(
        self, step: StepSpec, answer: Answer, fn: Function, *, word: str = "state", cursor: bool = False
    ) -> None:
        super().__init__(step.name)
        self.word = word
        self.undo = step.options.undo
        self._step = step
        self._answer = answer
        self._fn = fn
        self._has_cursor = cursor

    async def leave(self, data: msgspec.Raw, place: Place) -> Outcome:
        """See `Kind`."""
        cursor = place.take_cursor()
        while True:
            await place.rest(data, cursor)
            outcome: Outcome = await ask(self._step, *((data, cursor) if self._has_cursor else (data,)))
            data = data_of(outcome, data)
            if outcome.to:
                return outcome
            if outcome.cursor is not UNSET:
                cursor = outcome.cursor
            if outcome.wait is not None:
                await asyncio.sleep(outcome.wait)

    @property
    def targets(self) -> frozenset[str] | None:
        """See `Kind`."""
        return self._answer.to

    @property
    def functions(self) -> tuple[Function, ...]:
        """See `Kind`."""
        return (self._fn,)


class LoopState(Kind):
    """Code on the run's own loop: workflow code, or a router, which is pure."""

    def __init__(self, name: str, fn: Function, answer: Answer, data: ValueCodec, *, is_router: bool) -> None:
        super().__init__(name)
        self.word = "router" if is_router else "workflow"
        self.is_pure = is_router
        self._fn = fn
        self._answer = answer
        self._data = data
        self._takes = count_taken(name, fn, 1)

    async def leave(self, data: msgspec.Raw, place: Place) -> Outcome:
        """See `Kind`."""
        value = await readable(self._data, data, f"data of {self.name}")
        returned = self._fn(*[value][: self._takes])
        try:
            if self.is_pure:
                return Outcome(to=self._answer.state_of(returned), data=data)
            outcome = self._answer.read(value, await returned)
        except (StateResultError, UnserialisableError) as error:
            await park(error)
        return record_left(self.name, outcome)

    @property
    def targets(self) -> frozenset[str] | None:
        """See `Kind`."""
        return self._answer.to

    @property
    def functions(self) -> tuple[Function, ...]:
        """See `Kind`."""
        return (self._fn,)


class TimerState(Kind):
    """A durable pause."""

    word = "timer"

    def __init__(
        self, name: str, delay: Delay | Callable[[Any], Delay], answer: Answer, *, then: enum.Enum | None
    ) -> None:
        super().__init__(name)
        self._delay = delay
        self._takes = count_taken(name, delay, 1) if callable(delay) else 0
        self._answer = answer
        self._then = then

    async def leave(self, data: msgspec.Raw, place: Place) -> Outcome:
        """See `Kind`."""
        delay = self._delay
        if callable(delay):
            value = await readable(self._answer.data, data, f"data of {self.name}")
            delay = delay(*[value][: self._takes])
            if _wrong_delay(delay):
                await park(self._answer.refused(repr(delay), "seconds, a timedelta or an aware datetime"))
        if isinstance(delay, datetime):
            await sleep_until(delay)
        else:
            await asyncio.sleep(_seconds(delay))
        assert self._then is not None
        return record_left(self.name, Outcome(to=self._then.name, data=data))

    @property
    def targets(self) -> frozenset[str] | None:
        """See `Kind`."""
        return frozenset() if self._then is None else frozenset({self._then.name})

    def problems(self) -> list[str]:
        """See `Kind`."""
        wrong = ["has no then="] if self._then is None else []
        delay = self._delay
        if callable(delay):
            return [*wrong, "has an async function for its delay; write `def`"] if iscoroutinefunction(delay) else wrong
        if problem := _wrong_delay(delay):
            wrong.append(problem)
        elif not isinstance(delay, datetime) and _seconds(delay) < 0:
            wrong.append(f"waits {delay!r} seconds")
        return wrong


def _wrong_delay(delay: object) -> str:
    """What is wrong with it whoever says it; a function may find that its time has come already."""
    if isinstance(delay, datetime):
        return "" if delay.tzinfo is not None else f"waits until {delay}, which has no time zone"
    is_time = isinstance(delay, int | float | timedelta) and isfinite(_seconds(delay))
    return "" if is_time else f"waits {delay!r} seconds"


def _seconds(delay: float | timedelta) -> float:
    return delay.total_seconds() if isinstance(delay, timedelta) else delay
