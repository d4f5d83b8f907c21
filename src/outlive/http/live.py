"""Lists of runs that are followed, live: each is looked at once for all its readers.

A position in a list is what its reader knows of it: a digest of each row. So a reader that was cut off goes on at any
server of the store, also at one that was started since, and gets the rows that it does not have as they are now.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import AsyncGenerator, Iterable
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from outlive._tasks import own_task
from outlive.client.followers import Bell
from outlive.client.view import View
from outlive.errors import StoreUnavailableError
from outlive.http.problem import malformed
from outlive.http.sse import ALIVE, ALIVE_SECONDS, FIRST, ID_CHARACTERS_MAX, message
from outlive.http.wire.runs import RunsFollowQuery, RunView, run_view

LOOK_SECONDS = 1.0
DIGEST_BYTES = 6


class Row(NamedTuple):
    """A run as a list shows it."""

    digest: bytes
    """Another one when anything of the row changes."""
    message: bytes


Rows = dict[str, Row]
"""A page of a list, by the ids of its runs. It is never changed: all its readers have the same one."""


class LivePage:
    """The first page of a list, looked at again and again for all who follow it."""

    def __init__(self) -> None:
        self.rows: Rows | None = None
        """None before the first look."""
        self._position = b""
        """The id of a reader that has all of them."""
        self._list = b""
        """The message with the ids of all of them."""
        self._before: Rows | None = None
        self._changes: list[bytes] = []
        """What a reader is sent that has those before."""
        self.changed = asyncio.Event()
        """Replaced by another one with each change."""
        self.readers = 0
        self.task: asyncio.Task[None] | None = None
        self.error: BaseException | None = None

    def show(self, views: list[RunView]) -> None:
        """What the list shows now."""
        rows: Rows = {}
        for view in views:
            digest = _digest_of(view)
            known = None if self.rows is None else self.rows.get(view.id)
            rows[view.id] = known if known and known.digest == digest else Row(digest, message("run", view))
        if rows != self.rows:
            self._before, self.rows = self.rows, rows
            self._position = _position_of(row.digest for row in rows.values())
            (self._list,) = self._marked([message("list", {"ids": list(rows)})])
            self._changes = [] if self._before is None else self._marked(_changes(self._before, rows))
            self.ring()

    def whole(self, known: frozenset[bytes]) -> list[bytes]:
        """What a reader is sent at first, that knows these rows: the others, and the ids of all."""
        rows = self.rows or {}
        return [*(row.message for row in reversed(rows.values()) if row.digest not in known), self._list]

    def changes_since(self, shown: Rows) -> list[bytes]:
        """What a reader is sent that was shown these rows. All who have kept pace are sent the same."""
        if shown is self._before:
            return self._changes
        return self._marked(_changes(shown, self.rows or {}))

    def _marked(self, parts: list[bytes]) -> list[bytes]:
        if parts and self._position:
            parts[-1] = b"id: " + self._position + b"\n" + parts[-1]
        return parts

    def ring(self) -> None:
        """Let all readers look."""
        self.changed, before = asyncio.Event(), self.changed
        before.set()


class LivePages:
    """The lists that are followed, each looked at once for all its readers."""

    def __init__(self) -> None:
        self._pages: dict[bytes, LivePage] = {}

    async def follow(
        self, view: View, query: RunsFollowQuery, *, of: str, known: frozenset[bytes] = frozenset()
    ) -> AsyncGenerator[bytes, None]:
        """The runs of a list that are not known, the ids of all of them, then every run that is new, has changed, or is
        in the list no longer. The last message of each look has an id.

        Lists of the same query and `of` the same namespace are one.

        Args:
            known: what the reader has, as `read_known` gives it.
        """
        key = msgspec.json.encode([query, of])
        page = self._pages.setdefault(key, LivePage())
        page.readers += 1
        if page.task is None:
            page.task = own_task(_look(page, view, query), name="outlive-http-list")
        try:
            yield FIRST
            shown: Rows | None = None
            while True:
                changed = page.changed
                if page.error is not None:
                    raise page.error
                if page.rows is not None and page.rows is not shown:
                    parts = page.whole(known) if shown is None else page.changes_since(shown)
                    shown = page.rows
                    for part in parts:
                        yield part
                waiting = asyncio.ensure_future(changed.wait())
                try:
                    done, _ = await asyncio.wait([waiting], timeout=ALIVE_SECONDS)
                finally:
                    waiting.cancel()
                if not done:
                    yield ALIVE
        finally:
            page.readers -= 1
            if not page.readers:
                self._pages.pop(key, None)
                page.task.cancel()


def _changes(before: Rows, now: Rows) -> list[bytes]:
    """What a reader is sent that has the rows before.

    A run goes before the one whose place it has taken: a reader that shows more of the list than this page can tell
    that one from a run that is in the list no longer.
    """
    digests = {run_id: row.digest for run_id, row in before.items()}
    parts = [row.message for run_id, row in reversed(now.items()) if digests.get(run_id) != row.digest]
    return parts + [message("gone", {"id": run_id}) for run_id in before if run_id not in now]


def _digest_of(view: RunView) -> bytes:
    said = msgspec.json.encode([view.id, view.updated_at, view.status, view.waits, view.approvals])
    return blake2b(said, digest_size=DIGEST_BYTES).digest()


def _position_of(digests: Iterable[bytes]) -> bytes:
    """What a reader knows that has all of these rows; nothing if that is too long for a header."""
    found = b"=" + urlsafe_b64encode(b"".join(digests))
    return found if len(found) <= ID_CHARACTERS_MAX else b""


def read_known(text: str) -> frozenset[bytes]:
    """The rows that a reader has who sends this as `Last-Event-ID`.

    Raises:
        Problem: it is no id of ours.
    """
    if not text:
        return frozenset()
    try:
        found = b64decode(text.removeprefix("="), altchars=b"-_", validate=True)
    except (Error, ValueError):
        found = b"?"
    if not text.startswith("=") or len(text) > ID_CHARACTERS_MAX or len(found) % DIGEST_BYTES:
        raise malformed("Last-Event-ID is not the id of a message of this list")
    return frozenset(found[at : at + DIGEST_BYTES] for at in range(0, len(found), DIGEST_BYTES))


async def _look(page: LivePage, view: View, query: RunsFollowQuery) -> None:
    bell = Bell()
    try:
        while True:
            bell.clear()
            try:
                found = await view.runs(order="-created_at", limit=query.limit, after=None, **query.filters())
                page.show([run_view(run) for run in found])
            except StoreUnavailableError:
                pass
            await bell.wait(LOOK_SECONDS)
    except Exception as error:
        page.error = error
        page.ring()
