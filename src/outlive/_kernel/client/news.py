"""Following one run from a position: its journal, its row and what it publishes, as they change, until it has ended.

A follower looks at the store when it is rung (see `followers`), and now and then: often while things happen, less and
less often while nothing does, so that a thousand followers of quiet runs cost little. Where it is, is the journal and
the number of the last event in it; a later follower goes on from there. A run that goes on as the next generation has
a new journal, and is followed into it from its first event on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import msgspec

from outlive._kernel.client.access import Access
from outlive._kernel.client.followers import Followers
from outlive._kernel.client.following import JournalReader
from outlive._kernel.client.shown import Shown
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import Run
from outlive.errors import StoreUnavailableError, UnreadableError
from outlive.errors.store import StoreMovedError

QUIET_LOOKS = 8
"""A follower looks this many times less often when nothing happens."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a follower has come: all events of this journal up to this number are known."""

    journal: int = 0
    seq: int = -1


@dataclass(frozen=True, slots=True)
class News:
    """Something new of a run. One of the three is set, or none: then nothing has happened for a while."""

    position: Position
    run: Run
    """The run as it is now."""
    event: AnyEvent | None = None
    published: dict[str, Any] | None = None
    is_row: bool = False
    """Whether its row has changed."""


class NewsReader:
    """Follows runs, for one client."""

    def __init__(self, access: Access, *, followers: Followers, shown: Shown, journals: JournalReader) -> None:
        self._access = access
        self._followers = followers
        self._shown = shown
        self._journals = journals

    async def news(self, run_id: str, position: Position, *, look_seconds: float) -> AsyncGenerator[News, None]:
        """The news behind a position. The first is always the row, then the published object; ends with the run.

        Raises:
            RunNotFoundError: there is no such run, or it was deleted. EngineClosedError: the engine has stopped.
        """
        seen: Run | None = None
        published: msgspec.Struct | None = None
        wait = look_seconds
        self._followers.begin()
        with self._followers.following(run_id) as bell:
            while True:
                bell.clear()
                try:
                    # The row first: what it says stands in the journal, so an end is not seen before its event.
                    run = await self._access.info(run_id)
                    if run.journal != position.journal:
                        position = Position(run.journal)
                    known = self._shown.known_of(run)
                    # The first portion alone: what is done with it takes as long as its reader likes.
                    entries, is_all = await self._journals.portion(run, position.seq, known=known)
                    fields = await self._fields(run) if run.published != published else None
                except StoreMovedError:
                    raise
                except StoreUnavailableError:
                    await bell.wait(wait)
                    continue
                for entry in entries:
                    position = Position(run.journal, entry.position)
                    yield News(position, run, event=entry.event)
                has_news = bool(entries)
                if seen is None or _changed(seen, run):
                    seen, has_news = run, True
                    yield News(position, await self._shown.run(run), is_row=True)
                if fields is not None:
                    published, has_news = run.published, True
                    yield News(position, run, published=fields)
                if not is_all:
                    continue
                if run.status.is_terminal:
                    return
                wait = look_seconds if has_news else min(wait * 2, look_seconds * QUIET_LOOKS)
                if not has_news:
                    yield News(position, run)
                await bell.wait(wait)
                self._followers.check_open()

    async def _fields(self, run: Run) -> dict[str, Any] | None:
        if run.published is None:
            return None
        try:
            fields = msgspec.json.decode(await self._access.unpack(run.published))
        except UnreadableError as error:
            return {"[unreadable]": error.reason}
        return self._shown.plain(fields) if isinstance(fields, dict) else {}


def _changed(before: Run, now: Run) -> bool:
    """Whether people would see a difference."""
    return (before.status, before.waits, before.reason, before.tags, before.owner, before.approvals) != (
        now.status,
        now.waits,
        now.reason,
        now.tags,
        now.owner,
        now.approvals,
    )
