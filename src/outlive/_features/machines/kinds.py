"""The kinds of states: how each is run until it is left."""

from __future__ import annotations

import asyncio
import enum
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from math import isfinite
from typing import Any
from zlib import crc32

import msgspec
from msgspec import UNSET

from outlive._features.machines.answer import unchanged
from outlive._features.machines.asking import ask, park, readable
from outlive._features.machines.building import Function, StateBuilder, Targets, check_function, cursor_codec
from outlive._features.machines.snapshots import MachineSnapshots
from outlive._features.machines.wire import STATE_RESULT, StateResult
from outlive._kernel.define.in_run import sleep_until
from outlive._kernel.define.resources import count_taken
from outlive._kernel.define.step import Step
from outlive._kernel.journal.event import StateLeft
from outlive._kernel.model.payload import NO_PAYLOAD
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.replay.command import StepKind, StepSpec
from outlive._kernel.replay.frame import SCOPE
from outlive.errors import DefinitionError, UnserialisableError
from outlive.errors.program import StateResultError

Delay = float | timedelta | datetime


class Kind(ABC):
    """One state of a machine."""

    word = "state"
    """The word for this kind of state, for people."""
    is_pure = False
    """Whether it leaves no event: a router."""
    offers_snapshots = False
    """Whether it says itself where a snapshot may be taken."""
    undo: StepSpec | None = None
    """The step that undoes its effect."""

    def __init__(self, name: str, targets: frozenset[str] | None, *functions: Function) -> None:
        self.name = name
        self.targets = targets
        """The states that it can go to; None if only its code knows."""
        self.functions = functions
        """The code of the user in it, from which a picture may guess where it goes."""

    @abstractmethod
    async def leave(self, data: msgspec.Raw, snapshots: MachineSnapshots) -> StateResult:
        """Run it until it is left."""

    def problems(self) -> list[str]:
        """The problems of this state."""
        return []


def record_left(name: str, result: StateResult) -> StateResult:
    """Write down that a state was left; the same for one that is a step is its result."""
    execution = current_execution()
    if execution is not None:
        execution.refuse_if_dropped()
        scope = SCOPE.get()
        data = STATE_RESULT.encode(result, name)
        call = scope.call(f"@state/{name}")
        fact = StateLeft(at=0, run=scope.frame.number, call=call, payload=NO_PAYLOAD, digest=crc32(data))
        execution.record(fact, data)
    return result


class StepState(Kind):
    """A step: its result is the transition. A poll is called again after a pause, a stepped state with its cursor."""

    offers_snapshots = True

    def __init__(
        self,
        builder: StateBuilder,
        fn: Function,
        to: Targets,
        *,
        word: str = "state",
        undo: Step[..., Any] | Function | None = None,
        kind: StepKind | None = None,
        **options: Any,
    ) -> None:
        check_function(builder.name, fn)
        cursor = cursor_codec(fn) if word == "stepped" else None
        answer = builder.answer(fn, to, cursor=cursor, may_wait=word == "poll")
        super().__init__(builder.name, answer.to, fn)
        self.word = word
        self._has_cursor = cursor is not None
        # The writes of a transaction are undone by its database.
        read = answer.read if undo is None or kind is StepKind.TRANSACTION else answer.read_undoable

        def finish(values: list[Any], returned: Any) -> StateResult:
            result = read(values[0], returned)
            return result if cursor is None else unchanged(result, values[-1])

        self._step = builder.step(
            fn,
            codecs=() if cursor is None else (cursor,),
            finish=finish,
            keeps_raw=cursor is not None,
            undo=None if undo is None else builder.undo(undo),
            kind=kind,
            **options,
        )
        self.undo = self._step.options.undo

    async def leave(self, data: msgspec.Raw, snapshots: MachineSnapshots) -> StateResult:
        """See `Kind`."""
        cursor = snapshots.take_cursor()
        while True:
            await snapshots.take_if_due(data, cursor)
            result: StateResult = await ask(self._step, *((data, cursor) if self._has_cursor else (data,)))
            data = result.data_after(data)
            if result.to:
                return result
            if result.cursor is not UNSET:
                cursor = result.cursor
            if result.wait is not None:
                await asyncio.sleep(result.wait)


class LoopState(Kind):
    """Code on the run's own loop: workflow code, or a router, which is pure."""

    def __init__(self, builder: StateBuilder, fn: Function, to: Targets, *, is_router: bool) -> None:
        name = builder.name
        check_function(name, fn)
        self._answer = builder.answer(fn, to)
        if is_router and inspect.iscoroutinefunction(fn):
            raise DefinitionError(
                f"{name}: router {fn.__qualname__} must be a plain function: write `def`, or make it "
                "`.workflow(...)` if it has to wait"
            )
        if not is_router and not inspect.iscoroutinefunction(fn):
            raise DefinitionError(f"{name}: {fn.__qualname__} must be async: write `async def {fn.__name__}`")
        super().__init__(name, self._answer.to, fn)
        self.word = "router" if is_router else "workflow"
        self.is_pure = is_router
        self._fn = fn
        self._takes = count_taken(name, fn, 1)

    async def leave(self, data: msgspec.Raw, snapshots: MachineSnapshots) -> StateResult:
        """See `Kind`."""
        value = await readable(self._answer.data, data, f"data of {self.name}")
        returned = self._fn(*[value][: self._takes])
        try:
            if self.is_pure:
                return StateResult(to=self._answer.state_of(returned), data=data)
            result = self._answer.read(value, await returned)
        except (StateResultError, UnserialisableError) as error:
            await park(error)
        return record_left(self.name, result)


class TimerState(Kind):
    """A durable pause."""

    word = "timer"

    def __init__(self, builder: StateBuilder, delay: Delay | Callable[[Any], Delay], then: enum.Enum | None) -> None:
        super().__init__(builder.name, frozenset() if then is None else frozenset({then.name}))
        self._delay = delay
        self._takes = count_taken(self.name, delay, 1) if callable(delay) else 0
        self._answer = builder.answer()
        self._then = then

    async def leave(self, data: msgspec.Raw, snapshots: MachineSnapshots) -> StateResult:
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
        return record_left(self.name, StateResult(to=self._then.name, data=data))

    def problems(self) -> list[str]:
        """See `Kind`."""
        wrong = ["has no then="] if self._then is None else []
        delay = self._delay
        if callable(delay):
            is_async = inspect.iscoroutinefunction(delay)
            return [*wrong, "has an async function for its delay; write `def`"] if is_async else wrong
        if problem := _wrong_delay(delay):
            wrong.append(problem)
        elif not isinstance(delay, datetime) and _seconds(delay) < 0:
            wrong.append(f"waits {delay!r} seconds")
        return wrong


def _wrong_delay(delay: object) -> str:
    """The mistake in a delay, given or computed; a computed one may say that its time has come already."""
    if isinstance(delay, datetime):
        return "" if delay.tzinfo is not None else f"waits until {delay}, which has no time zone"
    is_time = isinstance(delay, int | float | timedelta) and isfinite(_seconds(delay))
    return "" if is_time else f"waits {delay!r} seconds"


def _seconds(delay: float | timedelta) -> float:
    return delay.total_seconds() if isinstance(delay, timedelta) else delay
