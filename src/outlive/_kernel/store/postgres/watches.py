"""Watches: who wants to hear of the end of which run. What an end does to them is in functions/take_watches.sql."""

from __future__ import annotations

from collections.abc import Sequence

from outlive._kernel.model import Run
from outlive._kernel.store.contract import Watch
from outlive._kernel.store.postgres.commit import Writing, retry_deadlocks
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.requests import find_runs
from outlive._kernel.store.postgres.rows import to_text


async def watch_ends(session: Session, watches: Sequence[Watch], writing: Writing) -> dict[str, Run]:
    """Keep watches, each under a lock of its run."""
    if not watches:
        return {}
    # By run, the last one of a watcher only: a statement can put a row once.
    last = {(watch.run_id, watch.watcher): watch for watch in watches}
    columns = [list(map(to_text, column)) for column in zip(*((*key, it.key) for key, it in last.items()), strict=True)]
    wanted = [watch.run_id for watch in watches]
    while True:
        # First runs that were only asked for: what does not exist cannot be locked.
        await find_runs(session, wanted, writing)
        kept = {row[0] for row in await retry_deadlocks(lambda: session.fetch("put_watches", *columns))}
        runs = await find_runs(session, wanted, writing)
        open_ = [run for run in runs.values() if run.number == 0 and not run.status.is_terminal]
        if all(to_text(run.id) in kept for run in open_):
            return runs
        # A run took the place of another one under its id while we waited for its lock.
