"""Steps whose effects are rows in the store's own database: they commit with the journal, so exactly once.

A transaction begins, the function runs in it, and the open transaction goes to the worker with the outcome: the event
`StepSucceeded`, and what follows from it at once, are committed in it (`Committer.submit_within`). Until then nothing
of what the function wrote can be seen, and an exception, a timeout, a cancel, a crash or another owner leaves nothing
of it.

A store that is away fails no attempt: the function runs again when the store is back. So does one whose transaction the
database has ended so that another one could go on (a deadlock, a serialization failure), up to a limit.

What a database refuses only when it is to be committed (a deferred constraint) is the function's own failure. By then
the run has gone on in memory as if the step had succeeded; the worker discards it and rebuilds it from its journal, and
the attempt raises the refusal that is kept here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from outlive._replay.command import RunStep
from outlive._runtime.commit.committer import Committer, rolled_back
from outlive._runtime.commit.retry import BACKOFF_FIRST_SECONDS, BACKOFF_MAX_SECONDS
from outlive._runtime.lease_deadline import LeaseDeadline
from outlive._runtime.tree.attempt import Attempt
from outlive._runtime.wakeup import Wakeup
from outlive._store.contract import Transaction
from outlive.errors import StoreUnavailableError
from outlive.telemetry import log, run_fields

GIVE_WAYS_MAX = 10
"""How often an attempt begins again because its transaction gave way, in about 20 s; then what was raised fails it."""
REFUSALS_KEPT_MAX = 1_000
"""Refusals whose runs have not been rebuilt yet."""


class TransactionSteps:
    """Calls functions in transactions, and keeps why the database refused some of them."""

    def __init__(self, committer: Committer, lease: LeaseDeadline, *, seconds_max: float) -> None:
        self._committer = committer
        self._lease = lease
        self._seconds_max = seconds_max
        self._refusals: dict[tuple[int, int, str], tuple[int, Exception]] = {}

    def refuse(self, journal: int, command: RunStep, reason: Exception) -> None:
        """The database refused what an attempt wrote: keep the reason until the attempt is made again, and raise it."""
        if len(self._refusals) >= REFUSALS_KEPT_MAX:
            self._refusals.clear()  # Other workers have taken their trees over; at worst an attempt is made again.
        self._refusals[journal, command.run, command.call] = command.attempt, reason

    async def run(self, journal: int, attempt: Attempt, call: Callable[[Attempt, Any], Awaitable[bytes]]) -> bytes:
        """The encoded result of a step; its transaction is open and goes along with the attempt."""
        command = attempt.command
        number, refusal = self._refusals.pop((journal, command.run, command.call), (0, None))
        if refusal is not None and number == command.attempt:
            raise refusal
        pause, gave_way = BACKOFF_FIRST_SECONDS, 0
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
