"""Reads along with the journal of a run: every event in its order, from the existing ones on to the coming ones.

A position is the place of an event in the journal, so a reader that was cut off goes on behind the last one that it
has seen. When a run goes on as a new generation, its journal is a new one, and positions begin again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

from outlive._kernel.client.access import Access
from outlive._kernel.client.followers import Followers
from outlive._kernel.client.shown import EVENTS_AT_ONCE, KnownSecrets, Shown, portions_of
from outlive._kernel.client.streams import LookRest
from outlive._kernel.client.why import is_stopped
from outlive._kernel.journal.codec import Row, open_rows
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import Run, given
from outlive._kernel.values.event import Event, event_of
from outlive.errors import RunParkedError, StoreUnavailableError
from outlive.errors.store import StoreMovedError

LOOK_SECONDS = 0.1
"""How often a reader looks: no store rings for every event."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """An event of a journal, and where it stands there."""

    position: int
    event: AnyEvent
    """With its payloads in their public form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """Some events of a journal, as they are stored."""

    stored: Sequence[tuple[Row, AnyEvent]]
    is_last: bool
    """Whether there were no more when they were read."""
    secrets: set[str] | None
    """The texts in the journal that are not to be seen."""

    def portions(self) -> Iterator[slice]:
        """See `portions_of`."""
        return portions_of([event for _, event in self.stored])


class JournalReader:
    """Reads along with journals for one client."""

    def __init__(self, access: Access, *, shown: Shown, followers: Followers, new_rest: Callable[[], LookRest]) -> None:
        self._access, self._shown, self._followers, self._new_rest = access, shown, followers, new_rest

    async def entries(self, run_id: str, *, after: int) -> AsyncIterator[Event]:
        """Events behind a position, until the run has ended. See `RunHandle.follow`."""
        position = given.whole("run.follow", "after", after, least=-1)
        run = await self._access.info(run_id)
        journal, rest, followers = run.journal, self._new_rest(), self._followers
        with followers.following(run_id) as bell:
            while True:
                bell.clear()
                try:
                    run = await self._access.info(run_id)
                    # Looked at before the journal is read: whatever it says, the journal has by then.
                    root = await self._access.root_of(run)
                    if run.journal != journal:
                        journal, position = run.journal, -1
                    known = self._shown.known_of(run)  # Held while it follows, however little is kept of others.
                    found = await self.read(run, position, known=known)
                except StoreMovedError:
                    raise
                except StoreUnavailableError:
                    await rest(bell, LOOK_SECONDS)  # It is waited for, as by all who wait for a run.
                    continue
                for entry in found:
                    position = entry.position
                    yield event_of(position, entry.event, run.root_id)
                if root.status.is_terminal:
                    return
                if is_stopped(root):
                    raise RunParkedError(run_id, root.reason)
                await rest(bell, LOOK_SECONDS)
                followers.check_open()

    async def read(self, run: Run, after: int, *, known: KnownSecrets | None = None) -> list[JournalEntry]:
        """All events behind a position that are there now, as people may see them."""
        return [entry async for portion in self.portions(run, after, known=known) for entry in portion]

    async def portions(
        self, run: Run, after: int, *, limit: int | None = None, known: KnownSecrets | None = None
    ) -> AsyncGenerator[list[JournalEntry], None]:
        """At most `limit` events behind a position that are there now, as people may see them: as many at once as
        `portions_of` says, so that a journal may be larger than the memory. None of the lists is empty."""
        left = limit
        while left is None or left:
            page = await self._page(run, after, known, limit=EVENTS_AT_ONCE if left is None else left)
            for part in page.portions():
                yield await self._shown_of(page, part)
            if page.is_last:
                return
            after = page.stored[-1][0][0]
            left = None if left is None else left - len(page.stored)

    async def portion(self, run: Run, after: int, *, known: KnownSecrets) -> tuple[list[JournalEntry], bool]:
        """The first of these portions, and whether it is all that there is now."""
        page = await self._page(run, after, known, limit=EVENTS_AT_ONCE)
        part = next(page.portions(), None)
        if part is None:
            return [], True
        return await self._shown_of(page, part), page.is_last and part.stop == len(page.stored)

    async def event(self, run: Run, position: int) -> JournalEntry | None:
        """The event at a position, as people may see it; None if there is none."""
        secrets = None
        if self._shown.hides:
            known = self._shown.known_of(run)
            async for _ in self._shown.look(run, known):
                pass
            secrets = known.texts
        page = await self._read_page(run, position - 1, secrets, limit=1)
        found = await self._shown_of(page, slice(1))
        return next((entry for entry in found if entry.position == position), None)

    async def _page(self, run: Run, after: int, known: KnownSecrets | None, *, limit: int) -> _Page:
        """The next events as they are stored, at most `limit` and not many.

        What is hidden in one event is blacked out in others. So the whole journal is looked at to show a part of it,
        but for events that were looked at before. A reader that comes again holds what is `known` of the journal.
        """
        if not self._shown.hides:
            return await self._read_page(run, after, None, limit=limit)
        known = self._shown.known_of(run) if known is None else known
        begin = known.position
        found: list[tuple[Row, AnyEvent]] = []
        async for looked_at in self._shown.look(run, known):
            if len(found) <= EVENTS_AT_ONCE:
                found += [pair for pair in looked_at if pair[0][0] > after]
        if after >= begin and len(found) <= EVENTS_AT_ONCE:
            return _Page(stored=found[:limit], is_last=len(found) <= limit, secrets=known.texts)
        # They were looked at before, or are too many to be kept meanwhile.
        return await self._read_page(run, after, known.texts, limit=limit)

    async def _read_page(self, run: Run, after: int, secrets: set[str] | None, *, limit: int) -> _Page:
        limit = min(limit, EVENTS_AT_ONCE)
        rows = await self._access.store.read_journal(run.journal, after=after, limit=limit)
        events = open_rows(rows, nonce=run.nonce, run_id=run.root_id, first=after + 1)
        stored = list(zip(rows, events, strict=True))
        return _Page(stored=stored, is_last=len(rows) < limit, secrets=secrets)

    async def _shown_of(self, page: _Page, part: slice) -> list[JournalEntry]:
        stored = page.stored[part]
        shown = await self._shown.events([event for _, event in stored], page.secrets)
        await asyncio.sleep(0)  # Other requests have their turn.
        return [JournalEntry(position=row[0], event=event) for (row, _), event in zip(stored, shown, strict=True)]
