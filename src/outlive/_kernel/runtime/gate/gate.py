"""The gate before a step: its breaker and its rate limit are asked, and the attempt begins when both agree.

The executor asks when it has room for the attempt, so that what is counted is about to begin. An attempt that has to
wait has not begun: it takes no room any more, its timeout does not run, and it uses up no retry. A short wait is in
memory only. After a long one the step is delayed: the journal says until when (`StepDelayed`), and until then it waits
like one in its back-off, so its run may be suspended, and a crash loses nothing. Then the executor asks again. A replay
never asks.

The states of breakers and limits are in `cells`; what they decide is in `_model.breaker` and `_model.limit`; how
breakers are asked, and how ends of attempts are recorded in them, is in `breakers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple, Protocol

from outlive._kernel.journal.event import StepDelayed
from outlive._kernel.model.breaker import Breaker
from outlive._kernel.model.guard import Guard
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.limit import LimitState, LimitTurn, RateLimit, Room, ask_limit, give_back, try_limit
from outlive._kernel.replay.command import RunStep
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.gate.breakers import Breakers
from outlive._kernel.runtime.gate.cells import LimitCells
from outlive._kernel.runtime.gate.ticket import Ticket
from outlive._kernel.store.contract import Store
from outlive._tasks import own_task
from outlive.errors import CircuitOpenError, OutliveError, RateLimitedError
from outlive.telemetry import Counters, log

WAIT_SECONDS_MAX = 2.0
"""How long an attempt waits in memory; if it would take longer, the journal says until when the step is delayed."""
DELAY_SECONDS = 10.0
"""For how long a step is delayed whose short waits in memory have come to more than the maximum."""
AGAIN_SECONDS = 1.0
LATE_SECONDS = 1.0
"""An attempt that has waited, has passed the gate and then finds no room for so long asks again."""

_WAIT_MAX = round(WAIT_SECONDS_MAX * MICROSECONDS)
_LATE = round(LATE_SECONDS * MICROSECONDS)


class _Wait(NamedTuple):
    """An attempt may not begin yet."""

    seconds: float
    by: str
    error: OutliveError | None
    """The error with which the step fails, if its policy is to fail instead of waiting."""
    has_turn: bool = False
    breaker: str = ""
    """The name of the breaker, if that is why."""


class Applicant(Protocol):
    """An attempt that asks to begin, as the gate sees it.

    Exactly one of `passed`, `delayed` and `refused` is called, unless the attempt is cancelled before.
    """

    @property
    def command(self) -> RunStep:
        """The command that wants to run."""

    def room_freed(self) -> None:
        """It needs no room for the gate any more. Called once, before all others."""

    def found_open(self, breaker: str, until_at: int) -> None:
        """Its breaker is open, until then at least. Called at most once."""

    def passed(self) -> None:
        """It may begin."""

    def delayed(self, event: StepDelayed) -> None:
        """The journal is to say until when it waits."""

    def refused(self, error: BaseException) -> None:
        """It has failed without having begun."""


class Gate:
    """Lets the attempts of one engine through."""

    def __init__(self, store: Store, *, clock: Clock, counters: Counters) -> None:
        self._cells = LimitCells(store, clock)
        self._clock = clock
        self._counters = counters
        self._tasks: set[asyncio.Task[None]] = set()
        self._asleep = 0
        self._breakers = Breakers(self._cells, clock=clock, counters=counters, spawn=self._spawn)
        self._is_closed = False

    @property
    def is_resting(self) -> bool:
        """Whether every attempt at the gate waits for the clock."""
        return len(self._tasks) == self._asleep

    def admit(self, applicant: Applicant) -> Ticket:
        """Let an attempt through as soon as it may begin."""
        guard = applicant.command.options.guard
        assert guard is not None
        ticket = Ticket(guard, self._clock.new_id(), room_freed=applicant.room_freed, over=self._breakers.record_end)
        self._spawn(self._admit(ticket, applicant))
        return ticket

    def may_begin(self, ticket: Ticket) -> bool:
        """Whether an attempt that has passed may begin; not if it passed too long ago because there was no room."""
        return not ticket.has_slept or self._clock.now() <= ticket.passed_at + _LATE

    def give_back(self, command: RunStep) -> None:
        """A step that was lined up in its rate limit was cancelled: give its place back."""
        guard = command.options.guard
        if guard is not None and guard.limit is not None and not self._is_closed:
            self._spawn(self._give_back(guard, guard.limit, command))

    async def close(self, *, timeout_seconds: float) -> None:
        """Stop; what is being written to the store gets there if that takes no longer than the timeout."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_seconds)
        self.abandon()

    def abandon(self) -> None:
        """Stop at once, and record nothing more."""
        self._is_closed = self._breakers.is_closed = True
        for task in self._tasks:
            task.cancel()

    def _spawn(self, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = own_task(doing, name="outlive-gate")
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the gate failed", exc_info=error)

    # -- Asking ----------------------------------------------------------------------------------------------

    async def _admit(self, ticket: Ticket, applicant: Applicant) -> None:
        try:
            await self._pass(ticket, applicant)
        finally:
            ticket.free_room()

    async def _pass(self, ticket: Ticket, applicant: Applicant) -> None:
        command = applicant.command
        try:
            cost = _cost_of(ticket.guard, command)
        except Exception as error:  # The user's code may raise anything; its failure is data.
            if not ticket.is_over:
                applicant.refused(error)
            return
        waited = 0.0
        was_open = False
        while not ticket.has_ended():
            try:
                wait = await self._ask(ticket, command, cost)
            except Exception:  # Whatever is wrong with the store is not the failure of the step.
                log.exception("step %s cannot be let through; that is tried again", command.call)
                wait = _Wait(AGAIN_SECONDS, "the store", None)
                self._breakers.withdraw_soon(ticket)
            if ticket.has_ended():
                break
            if wait is None:
                ticket.passed_at = self._clock.now()
                self._breakers.renew_later(ticket)
                ticket.free_room()
                applicant.passed()
                return
            if wait.breaker and not was_open:
                was_open = True
                applicant.found_open(wait.breaker, self._clock.now() + round(wait.seconds * MICROSECONDS))
            if wait.error is not None and not command.options.parks:
                applicant.refused(wait.error)
                return
            waited += wait.seconds
            if waited > WAIT_SECONDS_MAX:
                self._counters.steps_delayed += 1
                seconds = wait.seconds if wait.seconds > WAIT_SECONDS_MAX else DELAY_SECONDS
                applicant.delayed(self._delay_of(command, wait, seconds))
                return
            await self._sleep(ticket, wait.seconds)
        await self._breakers.withdraw(ticket)

    def _delay_of(self, command: RunStep, wait: _Wait, seconds: float) -> StepDelayed:
        now_at = self._clock.now()
        return StepDelayed(
            at=now_at,
            run=command.run,
            call=command.call,
            until_at=now_at + round(seconds * MICROSECONDS),
            by=wait.by,
            has_turn=wait.has_turn or command.has_turn,
            digest=command.digest,
        )

    async def _ask(self, ticket: Ticket, command: RunStep, cost: int) -> _Wait | None:
        """None if the attempt may begin now, else why not. The breaker is asked first, so that a refused attempt costs
        nothing of the limit, and once more after a wait, because it may have opened meanwhile."""
        breaker, limit = ticket.guard.breaker, ticket.guard.limit
        if breaker is not None and (wait := await self._ask_breaker(ticket, breaker)) is not None:
            return wait
        if limit is None or not cost or ticket.is_over:
            return None
        wait = await self._ask_limit(ticket, limit, cost, command)
        if wait is not None:
            await self._breakers.withdraw(ticket)
        elif breaker is not None and ticket.has_slept and not ticket.has_ended():
            return await self._ask_breaker(ticket, breaker)
        return wait

    async def _ask_breaker(self, ticket: Ticket, breaker: Breaker) -> _Wait | None:
        seconds = await self._breakers.ask(ticket, breaker)
        if seconds is None:
            return None
        error = CircuitOpenError(breaker.name, seconds) if breaker.when_open == "fail" else None
        return _Wait(seconds, f"breaker {breaker.name}", error, breaker=breaker.name)

    async def _ask_limit(self, ticket: Ticket, limit: RateLimit, cost: int, command: RunStep) -> _Wait | None:
        may_wait = limit.when_full == "wait" or command.options.parks

        def ask(state: LimitState, now_at: int) -> tuple[LimitState, tuple[Room | LimitTurn, int]]:
            if may_wait:
                after, answer = ask_limit(
                    limit, state, cost=cost, now_at=now_at, wait_max=_WAIT_MAX, has_turn=command.has_turn
                )
            else:
                after, answer = try_limit(limit, state, cost=cost, now_at=now_at)
            return after, (answer, now_at)

        answer, now_at = await self._cells.change(limit, ask)
        seconds = (answer.at - now_at) / MICROSECONDS
        if isinstance(answer, Room):
            await self._sleep(ticket, seconds)
            return None
        error = None if may_wait else RateLimitedError(limit.name, answer.tier, seconds)
        return _Wait(seconds, f"rate limit {limit.name} ({answer.tier})", error, has_turn=True)

    async def _give_back(self, guard: Guard, limit: RateLimit, command: RunStep) -> None:
        cost = _cost_of(guard, command)
        await self._cells.change(limit, lambda state, now_at: (give_back(limit, state, cost=cost), None))

    async def _sleep(self, ticket: Ticket, seconds: float) -> None:
        self._asleep += 1
        try:
            await ticket.sleep(self._clock, seconds)
        finally:
            self._asleep -= 1


def _cost_of(guard: Guard, command: RunStep) -> int:
    if not callable(guard.cost):
        return guard.cost_of([], {})
    args, kwargs = command.step.signature.decode(command.arguments)
    return guard.cost_of(args, kwargs)
