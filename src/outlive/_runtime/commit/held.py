"""Changes that step aside: the store holds them, because somebody else's open transaction takes an id that they want.

Nobody knows when such a transaction ends, or how. So the store is asked now and then which of them are worth another
try, all of them at once and with a back-off; those are given back to the committer. Whatever comes of the try, it is an
outcome as any other: the id is taken now, or it is free.

Before a change was held its commit may have failed around its end, and what holds the id may be that very commit. So a
conflict of a change that was given back is believed only after reading what stands in its place (`gave_back`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from outlive._runtime.wakeup import Wakeup
from outlive._store.contract import Change, Outcome, Store
from outlive._tasks import own_task
from outlive.errors import StoreUnavailableError
from outlive.telemetry import log

PAUSE_FIRST_SECONDS = 0.02
PAUSE_MAX_SECONDS = 0.5
PAUSE_SECONDS_PER_CHANGE = 0.004
"""Looking takes a store about a millisecond for each id that is held."""

Entry = tuple[Change, Callable[[Outcome, int], None]]


class HeldChanges:
    """Keeps changes until they are worth another try."""

    def __init__(self, store: Store, *, give_back: Callable[[list[Entry]], None]) -> None:
        self._store = store
        self._give_back = give_back
        self._entries: list[Entry] = []
        self._given: set[int] = set()
        self.looking: asyncio.Task[None] | None = None
        """Looks now and then, while there is something to look for."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def has_trees(self) -> bool:
        """Whether trees that exist wait here, and not only starts."""
        return any(change.journal for change, _ in self._entries)

    def add(self, entry: Entry) -> None:
        """Keep a change, behind those of the same tree."""
        self._entries.append(entry)
        if self.looking is None:
            self.looking = own_task(self._look(), name="outlive-held")

    def gave_back(self, batch: Sequence[Entry]) -> bool:
        """Whether one of these was held before."""
        if not self._given:
            return False
        found = self._given.intersection(id(change) for change, _ in batch)
        self._given -= found
        return bool(found)

    def abandon(self) -> None:
        """Forget all of them: nothing of them was written."""
        self._entries = []
        if self.looking is not None:
            self.looking.cancel()

    async def _look(self) -> None:
        pause, is_told = PAUSE_FIRST_SECONDS, False
        try:
            while self._entries:
                await Wakeup().sleep(max(pause, len(self._entries) * PAUSE_SECONDS_PER_CHANGE))
                looked_at = list(self._entries)
                free = await self._find_free([change for change, _ in looked_at])
                self._hand_over([looked_at[place] for place in free])
                if not is_told and self._entries and pause == PAUSE_MAX_SECONDS:
                    is_told = True
                    waiting = ", ".join(sorted({_title(change) for change, _ in self._entries})[:5])
                    log.warning("%d changes wait for ids held by open transactions: %s", len(self._entries), waiting)
                pause = PAUSE_FIRST_SECONDS if free else min(PAUSE_MAX_SECONDS, pause * 2)
        finally:
            self.looking = None

    async def _find_free(self, changes: list[Change]) -> list[int]:
        try:
            return await self._store.find_free(changes)
        except StoreUnavailableError:
            return []
        except Exception:  # Nobody may be forgotten here: the committer will find out what is wrong.
            log.exception("nobody can say which ids are held")
            return list(range(len(changes)))

    def _hand_over(self, free: list[Entry]) -> None:
        # A tree goes on as a whole: a change that could be written must not overtake the one that it builds on.
        trees = {change.journal for change, _ in free} - {0}
        gone = {id(change) for change, _ in free}
        entries, self._entries = self._entries, []
        back = []
        for entry in entries:
            if id(entry[0]) in gone or entry[0].journal in trees:
                back.append(entry)
            else:
                self._entries.append(entry)
        if back:
            self._given |= {id(change) for change, _ in back}
            self._give_back(back)


def _title(change: Change) -> str:
    return change.runs[0].root_id if change.runs else f"journal {change.journal}"
