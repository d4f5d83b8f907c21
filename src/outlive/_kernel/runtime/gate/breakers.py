"""Asks breakers for permits, and records in them how attempts end.

An attempt that passes the gate has a permit of its breaker. Its end is recorded in the breaker, and an attempt that is
not made after all returns its permit: else no other attempt could be the trial that closes the breaker. A shared
breaker is asked only when the ends that this engine has reported before are recorded.

A trial of a shared breaker is renewed while it runs, because its process may die; a trial that lapses has failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from outlive._kernel.model.breaker import (
    Breaker,
    BreakerRefusal,
    BreakerState,
    Permit,
    Phase,
    ask_breaker,
    record_call,
    renew_trial,
    settled,
    withdraw_permit,
)
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.failures import is_retryable
from outlive._kernel.runtime.gate.cells import STORE_RETRY_SECONDS, LimitCells, StepOf
from outlive._kernel.runtime.gate.ticket import AttemptEnd, Ticket
from outlive._kernel.runtime.wakeup import Wakeup
from outlive.errors import CommitUnknownError, StepInterruptedError, StepTimeoutError
from outlive.telemetry import Counters, log

TRIAL_SECONDS = 30.0
"""A trial of a shared breaker that is not renewed for so long has failed: its process died."""
RENEW_SECONDS = TRIAL_SECONDS / 3
TRIES_MAX = 5
"""How often a change of a breaker is tried that the store refuses, though it is up."""

_TRIAL = round(TRIAL_SECONDS * MICROSECONDS)

T = TypeVar("T")
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class Breakers:
    """The breakers of one engine."""

    def __init__(self, cells: LimitCells, *, clock: Clock, counters: Counters, spawn: Spawn) -> None:
        self._cells = cells
        self._clock = clock
        self._counters = counters
        self._spawn = spawn
        self._reports: dict[str, asyncio.Task[None]] = {}
        """By name of a shared breaker: the last end that is being recorded."""
        self.is_closed = False
        """Whether nothing is recorded any more."""

    async def ask(self, ticket: Ticket, breaker: Breaker) -> float | None:
        """None if an attempt may be made, whose ticket has a permit now; else after how many seconds to ask again."""
        if (report := self._reports.get(breaker.name)) is not None and not report.done():
            await asyncio.wait([report])

        def ask(state: BreakerState, now_at: int) -> tuple[BreakerState, tuple[Permit | BreakerRefusal, int]]:
            lapse = _TRIAL if breaker.shared else None
            after, answer = ask_breaker(breaker, state, permit_id=ticket.permit_id, now_at=now_at, lapse=lapse)
            return after, (answer, now_at)

        answer, now_at = await self._cells.change(breaker, ask)
        if isinstance(answer, Permit):
            ticket.permit = answer
            return None
        ticket.permit = None
        return (answer.at - now_at) / MICROSECONDS

    def record_end(self, ticket: Ticket, end: AttemptEnd) -> None:
        """An attempt has ended."""
        breaker = ticket.guard.breaker
        # An attempt that has not passed returns its permit in `Gate._pass`.
        if breaker is not None and ticket.permit is not None and ticket.passed_at and not self.is_closed:
            self._record(breaker, ticket.permit, end)

    def _record(self, breaker: Breaker, permit: Permit, end: AttemptEnd) -> None:
        change = partial(_state_after, breaker, permit, end)
        if not breaker.shared:
            has_opened = self._cells.change_own(breaker, change)
            self._note(breaker, has_opened=has_opened)
            return
        # The end of a trial begins an epoch, so recording it twice does the same as recording it once.
        is_repeatable = end is not AttemptEnd.BAD or permit.is_trial
        after = self._reports.get(breaker.name)
        report = self._spawn(self._report(breaker, change, is_repeatable=is_repeatable, after=after))
        self._reports[breaker.name] = report

    async def _report(
        self, breaker: Breaker, change: StepOf[bool], *, is_repeatable: bool, after: asyncio.Task[None] | None
    ) -> None:
        if after is not None:
            await asyncio.wait([after])
        try:
            self._note(breaker, has_opened=await self._change(breaker, change, is_repeatable=is_repeatable))
        except CommitUnknownError:
            log.warning("it is not known whether an outcome was recorded in breaker %s", breaker.name)

    async def _change(self, breaker: Breaker, step: StepOf[T], *, is_repeatable: bool = True) -> T:
        """Change a breaker. If the end of a trial were lost, the breaker would refuse every attempt until the trial
        lapses, so the change is tried again whatever is wrong with the store."""
        for _ in range(TRIES_MAX - 1 if is_repeatable else 0):
            try:
                return await self._cells.change(breaker, step)
            except Exception:
                log.exception("breaker %s could not be changed; that is tried again", breaker.name)
                await Wakeup().sleep(STORE_RETRY_SECONDS)
        return await self._cells.change(breaker, step, is_repeatable=is_repeatable)

    def _note(self, breaker: Breaker, *, has_opened: bool) -> None:
        if has_opened:
            self._counters.breakers_opened += 1
            log.warning("breaker %s is open for %g s", breaker.name, breaker.reset)

    async def withdraw(self, ticket: Ticket) -> None:
        """Return the permit of an attempt that is not made, or not now: another one may be the trial."""
        breaker = ticket.guard.breaker
        if breaker is not None and ticket.permit is not None:
            ticket.permit = None
            await self._change(breaker, partial(_withdrawn, breaker, ticket))

    def withdraw_soon(self, ticket: Ticket) -> None:
        """Return the permit of an attempt that is not made, without waiting until that is recorded."""
        breaker = ticket.guard.breaker
        permit, ticket.permit = ticket.permit, None
        if breaker is not None and permit is not None:
            self._record(breaker, permit, AttemptEnd.UNKNOWN)

    def renew_later(self, ticket: Ticket) -> None:
        """Renew the trial of a shared breaker every `RENEW_SECONDS` until it ends."""
        breaker = ticket.guard.breaker
        if breaker is not None and breaker.shared and ticket.permit is not None and ticket.permit.is_trial:
            ticket.alarm = self._clock.call_later(RENEW_SECONDS, lambda: self._renew_soon(ticket, breaker))

    def _renew_soon(self, ticket: Ticket, breaker: Breaker) -> None:
        if not ticket.is_over and not self.is_closed:
            self._spawn(self._renew(ticket, breaker))

    async def _renew(self, ticket: Ticket, breaker: Breaker) -> None:
        permit = ticket.permit
        assert permit is not None

        def renew(state: BreakerState, now_at: int) -> tuple[BreakerState, None]:
            return renew_trial(breaker, state, permit, now_at=now_at, lapse=_TRIAL), None

        await self._change(breaker, renew)
        if not ticket.is_over:
            self.renew_later(ticket)


def end_of(breaker: Breaker | None, error: BaseException | None) -> AttemptEnd:
    """How a breaker counts an attempt that raised this, or returned."""
    if breaker is None or error is None:
        return AttemptEnd.GOOD
    if isinstance(error, StepTimeoutError | StepInterruptedError) or not isinstance(error, Exception):
        return AttemptEnd.BAD
    return AttemptEnd.BAD if is_retryable(error, breaker.on) else AttemptEnd.GOOD


def _state_after(breaker: Breaker, permit: Permit, end: AttemptEnd, state: BreakerState, now_at: int) -> Any:
    """The state after an outcome, and whether that has opened the breaker."""
    if end is AttemptEnd.UNKNOWN:
        return withdraw_permit(breaker, state, permit.id, now_at=now_at), False
    before = settled(breaker, state, now_at=now_at)
    after = record_call(breaker, before, permit, is_good=end is AttemptEnd.GOOD, now_at=now_at)
    return after, after.phase is Phase.OPEN and after.epoch != before.epoch


def _withdrawn(breaker: Breaker, ticket: Ticket, state: BreakerState, now_at: int) -> tuple[BreakerState, None]:
    return withdraw_permit(breaker, state, ticket.permit_id, now_at=now_at), None
