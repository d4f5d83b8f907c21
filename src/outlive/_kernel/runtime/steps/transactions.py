"""Steps whose effects are rows in the store's own database: they commit with the journal, so exactly once.

A transaction begins, the function runs in it, and the open transaction goes to the worker with the outcome: the event
`StepSucceeded`, and what follows from it at once, are committed in it (`Committer.submit_within`). Until then nothing
of what the function wrote can be seen, and an exception, a timeout, a cancel, a crash or another owner leaves nothing
of it.

A store that is away fails no attempt: the function runs again when the store is back. So does one whose transaction the
database has ended so that another one could go on (a deadlock, a serialization failure), up to a limit.

What a database refuses only when it is to be committed (a deferred constraint) is the function's own failure. By then
the run has gone on in memory as if the step had succeeded; the worker discards it and rebuilds it from its journal, and
the attempt raises the refusal that is kept here. A transaction that gives way only then (a serialization failure) is
not refused: the number of such ends is kept, for the pause before it begins again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from outlive._kernel.replay.command import RunStep
from outlive._kernel.runtime.commit.committer import Committer, rolled_back
from outlive._kernel.runtime.commit.retry import BACKOFF_FIRST_SECONDS, BACKOFF_MAX_SECONDS
from outlive._kernel.runtime.lease_deadline import LeaseDeadline
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.store.contract import Transaction
from outlive.errors import StoreUnavailableError
from outlive.telemetry import log, run_fields

GIVE_WAYS_MAX = 10
"""How often an attempt begins again because its transaction gave way, in about 20 s; then what was raised fails it."""
VOID_KEPT_MAX = 1_000
"""Attempts whose transactions came to nothing that are remembered; the oldest are forgotten first."""


class Void(NamedTuple):
    """The failed transactions of an attempt."""

    number: int
    """Which attempt of its step it is."""
    gave_way: int
    """How often they gave way."""
    refusal: Exception | None = None
    """Why the database has not committed the last one, if the attempt is to raise that; None if it may well succeed."""


class TransactionSteps:
    """Calls functions in transactions, and keeps why the database refused some of them."""

    def __init__(self, committer: Committer, lease: LeaseDeadline, *, seconds_max: float) -> None:
        self._committer = committer
        self._lease = lease
        self._seconds_max = seconds_max
        self._void: dict[tuple[int, int, str], Void] = {}

    def void(self, journal: int, command: RunStep, transaction: Transaction, reason: Exception) -> None:
        """The database has not committed what an attempt wrote: keep the reason until the attempt is made again."""
        known = self._known(journal, command)
        gave_way = known.gave_way + 1 if transaction.gave_way(reason) else 0
        refusal = None if 0 < gave_way <= GIVE_WAYS_MAX else reason
        self._keep(journal, command, Void(command.attempt, gave_way, refusal))

    def _known(self, journal: int, command: RunStep) -> Void:
        void = self._void.pop((journal, command.run, command.call), None)
        return void if void is not None and void.number == command.attempt else Void(command.attempt, 0)

    def _keep(self, journal: int, command: RunStep, void: Void) -> None:
        self._known(journal, command)  # The newest ones are last.
        if len(self._void) >= VOID_KEPT_MAX:
            # It has succeeded, or another worker has taken its tree over; at worst an attempt is made again.
            del self._void[next(iter(self._void))]
        self._void[journal, command.run, command.call] = void

    async def run(self, journal: int, attempt: Attempt, call: Callable[[Attempt, Any], Awaitable[bytes]]) -> bytes:
        """The encoded result of a step; its transaction is open and goes along with the attempt."""
        command = attempt.command
        number, gave_way, refusal = self._known(journal, command)
        if refusal is not None:
            raise refusal
        pause = min(BACKOFF_MAX_SECONDS, BACKOFF_FIRST_SECONDS * 2**gave_way)
        if gave_way:
            self._keep(journal, command, Void(number, gave_way))
            await Wakeup().sleep(pause / 2)
        while True:
            transaction: Transaction | None = None
            try:
                transaction = await self._begin()
                return await self._run_in(transaction, attempt, call)
            except Exception as error:
                if not isinstance(error, StoreUnavailableError):
                    gave_way += 1
                    if transaction is None or not transaction.gave_way(error) or gave_way > GIVE_WAYS_MAX:
                        raise
                    self._keep(journal, command, Void(number, gave_way))
                step = attempt.context()
                extra = run_fields(step.run_id, step.workflow, step=step.name, attempt=step.attempt)
                log.warning("step %s of run %s is done again: %s", command.call, step.run_id, error, extra=extra)
            await Wakeup().sleep(pause)
            pause = min(BACKOFF_MAX_SECONDS, pause * 2)

    async def _begin(self) -> Transaction:
        # Waiting for a transaction is not the step's time.
        transaction = await self._committer.begin(seconds_max=self._seconds_max)
        while not self._lease.is_held:
            # Another worker may own the run by now, and must not wait for the locks of an unused transaction.
            await asyncio.shield(rolled_back(transaction))
            await self._lease.until_held()
            transaction = await self._committer.begin(seconds_max=self._seconds_max)
        return transaction

    async def _run_in(
        self, transaction: Transaction, attempt: Attempt, call: Callable[[Attempt, Any], Awaitable[bytes]]
    ) -> bytes:
        try:
            handle = transaction.handle
            result = await call(attempt, handle if attempt.command.step.is_async else handle.sync)
        except BaseException:
            # Shielded: a second cancellation must not leave the transaction open.
            await asyncio.shield(rolled_back(transaction))
            raise
        attempt.transaction = transaction
        return result
