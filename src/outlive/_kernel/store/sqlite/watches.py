"""Watches: who wants to hear of the end of which run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outlive._kernel.model import Run
from outlive._kernel.store.contract import NO_LIMIT, Watch
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.inbox import put_messages
from outlive._kernel.store.sqlite.read import find_runs
from outlive._kernel.store.sqlite.writer import each
from outlive._kernel.store.tables.rows import to_json


def _watch_ends(session: Session, watches: Sequence[Watch]) -> dict[str, Run]:
    runs = find_runs(session, [watch.run_id for watch in watches])
    for watch in watches:
        run = runs.get(watch.run_id)
        if run is not None and run.number == 0 and not run.status.is_terminal:
            session.execute("put_watch", watch.run_id, watch.watcher, watch.key)
    return runs


def send_ends(session: Session, ended: Mapping[str, Run]) -> None:
    """Send the ends of these runs, given by id, to their watchers."""
    rows = session.execute("take_watches", to_json(list(ended)))
    watches = [Watch(run_id=str(run_id), watcher=str(watcher), key=str(key)) for run_id, watcher, key in rows]
    if watches:
        at = session.clock()
        messages = [watch.message(ended[watch.run_id], at=at) for watch in watches]
        put_messages(session, messages, inbox_messages_max=NO_LIMIT)


WATCH_ENDS = each(_watch_ends)
