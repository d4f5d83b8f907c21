"""Notes in the store which run blocks the event loop of this worker, while it does.

The event loop cannot do it, so the thread of the watchdog does, over a store that it opens for this and closes again.
Which run it is, the stack of the blocked thread says: nothing is kept for it while runs move.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from msgspec.structs import replace

from outlive._kernel.model.stalls import STALLS_CELL, Stall, with_stall
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.store.contract import Store
from outlive.telemetry import log

PACKAGE = str(Path(__file__).parents[2])
NOTE_SECONDS = 3.0
"""How long the store may take; without the note the run only counts as interrupted."""
LOCALS = ("live", "self")
"""Where a function that moves a tree has it."""


def stall_on(frame: FrameType | None, *, seconds: float) -> Stall | None:
    """The stall of the tree that this stack moves or runs a step of; None if the stack belongs to no tree."""
    where, live = "", None
    while frame is not None:
        code = frame.f_code
        if not where and not code.co_filename.startswith(PACKAGE):
            where = f"{code.co_name} ({Path(code.co_filename).name}:{frame.f_lineno})"
        found = next((value for name in LOCALS if isinstance(value := frame.f_locals.get(name), LiveTree)), None)
        live, frame = live or found, frame.f_back
    if live is None or not live.journal or 0 not in live.fold.runs:
        return None
    root = live.fold.root
    return Stall(root.id, root.nonce, root.epoch, round(seconds, 1), where)


class StallNotes:
    """Writes stalls of one engine; from any thread but that of its event loop."""

    def __init__(self, new_store: Callable[[], Store] | None) -> None:
        self._new_store = new_store
        """None if no other process has the store, so that no other worker is to know."""

    def note(self, stall: Stall, *, worker_id: str) -> None:
        """Write it down, if the store can be reached and says that the session `worker_id` still owns the run."""
        if self._new_store is None:
            return
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(asyncio.wait_for(_note(self._new_store(), stall, worker_id), NOTE_SECONDS))
        except Exception as error:  # The session ends all the same.
            log.warning("that run %s blocks the event loop could not be noted: %r", stall.run_id, error)
        finally:
            loop.close()


async def _note(store: Store, stall: Stall, worker_id: str) -> None:
    await store.open(migrate=False)
    try:
        run = await store.find_run(stall.run_id)
        if run is not None and (run.nonce, run.owner) == (stall.nonce, worker_id):
            # In the middle of a replay the tree in memory does not know yet by which claim it is here.
            known = replace(stall, epoch=run.epoch)
            await store.change_cell(STALLS_CELL, lambda data, now_at: (with_stall(data, known), None))
    finally:
        await store.close()
