"""Reads along with the journal of a run: every event in its order, those that are there and those that come.

A position is the place of an event in the journal, so a reader that was cut off goes on behind the last one that it
has seen. When a run goes on as a new generation, its journal is a new one, and positions begin again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from outlive._journal.codec import Row, open_rows
from outlive._journal.event import AnyEvent
from outlive._model import Run, given
from outlive._values.event import Event, event_of
from outlive.client.access import Access
from outlive.client.followers import Followers
from outlive.client.shown import KnownSecrets, Shown
from outlive.client.streams import Rest
from outlive.client.why import is_stopped
from outlive.errors import RunParkedError, StoreMovedError, StoreUnavailableError

LOOK_SECONDS = 0.1
"""How often a reader looks: no store rings for every event."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """An event of a journal, and where it stands there."""

    position: int
    event: AnyEvent
    """With its payloads in their public form."""


class JournalReader:
    """Reads along with journals for one client."""

    def __init__(self, access: Access, *, shown: Shown, followers: Followers, new_rest: Callable[[], Rest]) -> None:
        self._access, self._shown, self._followers, self._new_rest = access, shown, followers, new_rest

    async def whole(self, run_id: str) -> list[JournalEntry]:
        """The journal of the tree that a run belongs to, as people may see it."""
        return await self.read(await self._access.info(run_id), -1)

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

    async def read(
        self, run: Run, after: int, *, limit: int | None = None, known: KnownSecrets | None = None
    ) -> list[JournalEntry]:
        """At most `limit` events behind a position that are there now, as people may see them.

        What is hidden in one event is blacked out in others. So the whole journal is looked at to show a part of it,
        but for events that were looked at before. A reader that comes again holds what is `known` of the journal.
        """
        if not self._shown.hides:
            rows, events = await self._open(run, after, limit)
            return _entries(rows, await self._shown.events(events))
        known = self._shown.known_of(run) if known is None else known
        begin = known.position
        found: list[tuple[Row, AnyEvent]] = []
        async for looked_at in self._shown.look(run, known):
            found += [pair for pair in looked_at if pair[0][0] > after]
            del found[len(found) if limit is None else limit :]
        rows, events = [row for row, _ in found], [event for _, event in found]
        if after < begin:
            # They were looked at before, and did not fit in.
            rows, events = await self._open(run, after, limit)
        return _entries(rows, await self._shown.events(events, known.texts))

    async def _open(self, run: Run, after: int, limit: int | None) -> tuple[list[Row], list[AnyEvent]]:
        rows = await self._access.store.read_journal(run.journal, after=after, limit=limit)
        return rows, list(open_rows(rows, nonce=run.nonce, run_id=run.root_id, first=after + 1))


def _entries(rows: Sequence[Row], events: Sequence[AnyEvent]) -> list[JournalEntry]:
    return [JournalEntry(position=row[0], event=event) for row, event in zip(rows, events, strict=True)]
