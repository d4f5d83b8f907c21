"""Ids that somebody else's open transaction takes, and what becomes of those who want them.

Whoever starts a run in a transaction of their own holds its id until they commit. Nobody can say before whether that id
is taken, so whoever wants it has to wait; but nobody else has to. A statement waits for an id for a moment only
(`ID_PATIENCE_MILLISECONDS`). Then we look which ids are held, one by one (`find_held`): the changes that want them are
answered `HELD`, all others are written.

A held id is remembered until somebody looks again, so that a thousand starts of it cost the server one look now and
then, and its log nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from outlive._store.contract import Change
from outlive._store.postgres.connection import Session
from outlive._store.postgres.rows import to_text

PAUSE_FIRST_SECONDS = 0.02
PAUSE_MAX_SECONDS = 0.5
HELD_MAX = 10_000
"""Ids that are remembered. Who forgets one waits a moment longer, and finds it again."""


class Pauses:
    """Of somebody who waits for an id: longer and longer ones, `seconds_max` in all."""

    def __init__(self, seconds_max: float = float("inf")) -> None:
        self._left = seconds_max
        self._next = PAUSE_FIRST_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether the waiting has taken too long."""
        return self._left <= 0

    async def pause(self) -> None:
        """Wait a little."""
        await asyncio.sleep(self._next)
        self._left -= self._next
        self._next = min(PAUSE_MAX_SECONDS, self._next * 2)


def ids_of(changes: Sequence[Change]) -> set[str]:
    """Every id that these changes take: of new trees, of children, and of what is renamed."""
    ids: set[str] = set()
    for change in changes:
        ids.update(run.id for run in change.runs if run.number or not change.journal)
        ids.update(run.id for run in change.renames)
        if change.starts:
            ids |= ids_of(change.starts)
    return ids


def find_waiting(changes: Sequence[Change], held: set[str]) -> list[int]:
    """Which of these changes cannot be written while these ids are held: those that want one of them, and those that
    build on such a change."""
    trees: set[int] = set()
    waiting = []
    for place, change in enumerate(changes):
        if change.journal in trees or not held.isdisjoint(ids_of([change])):
            waiting.append(place)
            trees |= {change.journal} - {0}
    return waiting


async def look_for_held(session: Session, changes: Sequence[Change], held: set[str]) -> bool:
    """Look which ids that these changes take are held now, and bring `held` up to date; whether any is."""
    wanted = {to_text(id_): id_ for id_ in sorted(ids_of(changes))}
    if not wanted:
        return False
    ((found,),) = await session.fetch("find_held", list(wanted))
    if len(held) > HELD_MAX:
        held.clear()
    held.difference_update(wanted.values())
    held.update(wanted[id_] for id_ in found)
    return bool(found)


async def find_free(session: Session, changes: Sequence[Change], held: set[str]) -> list[int]:
    """Which of these changes are worth another try."""
    await look_for_held(session, changes, held)
    return [place for place, change in enumerate(changes) if held.isdisjoint(ids_of([change]))]
