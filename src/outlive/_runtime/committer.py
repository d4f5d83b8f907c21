"""One writer for everything that has something to say: group commit.

While one batch is being committed, the next one collects. So a hundred runs that finish a step at about the same time
cost one transaction, and a run that is alone waits for nobody. Outcomes are answered from plain callbacks of the event
loop, never from inside a task, because an answer may feed an execution.

A store that is down is not a failure of any run: the batch is kept and tried again with back-off, and nothing behind it
moves. A commit whose outcome is unknown is read back and compared, row by row, before anyone hears of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from outlive._runtime.bell import Bell
from outlive._store.contract import Change, Outcome, Store
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.telemetry import Counters, log

BACKOFF_FIRST_SECONDS = 0.05
BACKOFF_MAX_SECONDS = 5.0
REFUSALS_MAX = 5
"""How often a change that the store refuses for a reason of its own is tried before its run is given up here."""
DRAIN_LOOK_SECONDS = 0.02

Answer = Callable[[Outcome, int], None]
"""Told the outcome of a change and the handle of its journal."""


class Committer:
    """Collects changes and commits them in batches, in the order in which they came."""

    def __init__(self, store: Store, *, counters: Counters, batch_max: int) -> None:
        self._store = store
        self._counters = counters
        self._batch_max = batch_max
        self._queue: deque[tuple[Change, Answer]] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._idle = Bell()
        self._is_abandoned = False
        self.trouble = ""
        """Why the store refuses at the moment; empty when all is well."""

    def submit(self, change: Change, answer: Answer) -> None:
        """Commit a change soon; `answer` is called from a plain callback once its outcome is durable."""
        assert change.rows, "every change proves by the next seq that it may be written"
        if self._is_abandoned:
            return
        self._queue.append((change, answer))
        if self._pump is None:
            self._pump = asyncio.get_running_loop().create_task(self._run(), name="outlive-committer")

    @property
    def is_idle(self) -> bool:
        """Whether everything submitted so far has its outcome."""
        return self._pump is None

    async def drain(self, *, patience_seconds: float) -> bool:
        """Wait until everything submitted so far has its outcome; False if the store is away for longer than this."""
        while self._pump is not None:
            await asyncio.wait([self._pump], timeout=DRAIN_LOOK_SECONDS)
            # The last answers were scheduled before the pump ended; let them be heard.
            await asyncio.sleep(0)
            patience_seconds -= DRAIN_LOOK_SECONDS
            if self.trouble and patience_seconds <= 0:
                return False
        return True

    def abandon(self) -> None:
        """Commit nothing more, not even what waits: the engine has stopped."""
        self._is_abandoned = True
        if self._pump is not None:
            self._pump.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._queue:
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), self._batch_max))]
                outcomes = await self._commit([change for change, _ in batch])
                self._count(batch, outcomes)
                loop.call_soon(_tell, batch, outcomes)
                # One turn of the loop: what the answers bring about joins the next batch.
                await asyncio.sleep(0)
        finally:
            self._pump = None

    async def _commit(self, changes: list[Change]) -> list[tuple[Outcome, int]]:
        pause, refusals = BACKOFF_FIRST_SECONDS, 0
        known: dict[int, tuple[Outcome, int]] = {}
        while True:
            open_ = [index for index in range(len(changes)) if index not in known]
            try:
                outcomes = await self._store.commit([changes[index] for index in open_])
            except CommitUnknownError as error:
                self._counters.unknowns += 1
                await self._say(error, pause)
                known |= await self._read_back(changes, open_)
                if len(known) == len(changes):
                    break
            except StoreUnavailableError as error:
                await self._say(error, pause)
            except Exception as error:
                # Not the store's state but something in the batch. Nobody may suffer for another's change.
                await self._say(error, pause)
                if len(open_) > 1:
                    known |= {index: (await self._commit([changes[index]]))[0] for index in open_}
                    break
                refusals += 1
                if refusals == REFUSALS_MAX:
                    log.error("a change of journal %d is given up: %s", changes[0].journal, error)
                    known[0] = Outcome.CONFLICT, changes[0].journal
                    break
            else:
                known |= dict(zip(open_, outcomes, strict=True))
                break
            pause = min(BACKOFF_MAX_SECONDS, pause * 2)
        if self.trouble:
            log.warning("the store is back; nothing was lost")
            self.trouble = ""
        return [known[index] for index in range(len(changes))]

    async def _read_back(self, changes: Sequence[Change], open_: list[int]) -> dict[int, tuple[Outcome, int]]:
        """Find out what became of a commit that failed around its end; what was not written is left out."""
        while True:
            try:
                found = {index: await read_back(self._store, changes[index]) for index in open_}
            except StoreUnavailableError as error:
                await self._say(error, BACKOFF_MAX_SECONDS / 5)
            else:
                return {index: outcome for index, outcome in found.items() if outcome is not None}

    async def _say(self, error: Exception, pause: float) -> None:
        if not self.trouble:
            is_bug = not isinstance(error, StoreUnavailableError)
            text = "%s; %d changes wait and will be tried again"
            log.error(text, error, len(self._queue) + 1, exc_info=error if is_bug else None)
        self.trouble = str(error) or repr(error)
        await self._idle.sleep(pause)

    def _count(self, batch: list[tuple[Change, Answer]], outcomes: list[tuple[Outcome, int]]) -> None:
        counters = self._counters
        counters.commits += 1
        for (change, _), (outcome, _) in zip(batch, outcomes, strict=True):
            if outcome is Outcome.CONFLICT:
                counters.conflicts += 1
                continue
            counters.rows += len(change.rows)
            for row in change.rows:
                counters.bytes += len(row[3])


async def read_back(store: Store, change: Change) -> tuple[Outcome, int] | None:
    """What became of a change whose commit was never answered: its outcome, or None if it was not written."""
    journal = change.journal
    if journal == 0:
        root = change.runs[0]
        run = await store.find_run(root.id)
        if run is None:
            return None
        if run.nonce != root.nonce:
            return Outcome.CONFLICT, 0
        journal = run.journal
    rows = await store.read_journal(journal, after=change.after, limit=len(change.rows))
    if not rows:
        return None
    return (Outcome.COMMITTED if rows == change.rows else Outcome.CONFLICT), journal


def _tell(batch: list[tuple[Change, Answer]], outcomes: list[tuple[Outcome, int]]) -> None:
    for (_, answer), (outcome, journal) in zip(batch, outcomes, strict=True):
        try:
            answer(outcome, journal)
        except Exception:  # The others have to hear their answers.
            log.exception("an answer of the committer was not understood")
