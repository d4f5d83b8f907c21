"""Runs that do not go on by themselves, or not yet, and why: what a person looks at after something went wrong.

A run that a live worker moves, and one that waits for a timer or for the world, is as it should be and is not listed.
Five kinds are: parked runs, which wait for a person; damaged ones, whose rows cannot be read; interrupted ones, whose
worker is gone and which wait for another; and runs that are due while no live worker has their definition, or takes
from their queue.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal

import msgspec

from outlive._kernel.client.why import has_definition, is_untaken, why
from outlive._kernel.model import Run, RunFilter, RunStatus
from outlive._kernel.model.run import UNENDED
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Store, WorkerInfo
from outlive._kernel.values.run import Run as ShownRun
from outlive._kernel.values.run import run_of
from outlive.errors.advice import Advice

IncompleteKind = Literal["parked", "interrupted", "damaged", "undefined", "untaken"]
"""Why a run does not move:

- `parked`: it stopped with a reason; `resume`, `skip_step` or `cancel` decide.
- `interrupted`: its worker is gone, and no other has taken it over yet.
- `damaged`: its row in the store cannot be read, so no worker takes it; `outlive fsck --repair` writes it again.
- `undefined`: it is due, and no live worker has its workflow in its version.
- `untaken`: it is due, and no live worker that has its workflow takes from its queue.
"""


class Incomplete(msgspec.Struct, frozen=True, kw_only=True):
    """A run that does not move, and why."""

    run: ShownRun
    """A root run, for its whole tree."""
    kind: IncompleteKind
    reason: str
    """One sentence for a person, the same that `why` says."""
    advice: tuple[Advice, ...] = ()
    """The verbs that help."""

    def __repr__(self) -> str:
        return f"<Incomplete {self.run.id}: {self.kind}, {self.reason}>"


async def find_incomplete(
    store: Store, *, limit: int, before: Run | None, shown: Callable[[Run], Awaitable[Run]]
) -> list[Incomplete]:
    """At most `limit` runs that do not move, newest first, after `before`.

    All open runs are looked at, a page at a time, until there are enough.
    """
    found: list[Incomplete] = []
    async for page in _open_roots(store, before):
        # After the runs: a worker that owned one of them then had begun before.
        workers = await store.list_workers()
        live = [worker for worker in workers if worker.is_live]
        now_at = store.now()
        for run in page:
            kind = _kind_of(run, live, now_at=now_at)
            if kind is not None:
                seen = await shown(run)
                found_why = why(seen, seen, workers, now_at=now_at)
                found.append(
                    Incomplete(
                        run=run_of(seen, with_traceback=False),
                        kind=kind,
                        reason=found_why.summary,
                        advice=found_why.advice,
                    )
                )
                if len(found) == limit:
                    return found
    return found


async def _open_roots(store: Store, before: Run | None) -> AsyncIterator[list[Run]]:
    wanted = RunFilter(statuses=UNENDED, roots_only=True)
    cursor = None if before is None else (before.created_at, before.id)
    while page := await store.list_runs(wanted, limit=PAGE_SIZE_MAX, before=cursor):
        yield page
        cursor = page[-1].created_at, page[-1].id


def _kind_of(run: Run, live: list[WorkerInfo], *, now_at: int) -> IncompleteKind | None:
    if run.status is RunStatus.DAMAGED:
        return "damaged"
    if run.status is RunStatus.PARKED:
        return "parked"
    if any(worker.id == run.owner for worker in live):
        return None
    if run.wake_at is not None and run.wake_at <= now_at:
        if not has_definition(live, run):
            return "undefined"
        if is_untaken(live, run):
            return "untaken"
    return "interrupted" if run.owner else None
