"""Lists of runs that are followed, live: each is looked at once for all its readers.

A position in a list is what its reader knows of it: a digest of each row. So a reader that was cut off goes on at any
server of the store, also at one that was started since, and gets the rows that it does not have as they are now.

Looks cost time that no reader pays for. So a principal follows a bounded number of different lists, a list rests for
a multiple of the time that its last look took, and all lists of a server share one budget.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, urlsafe_b64encode
from binascii import Error
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from outlive._kernel.client.followers import Bell
from outlive._kernel.values.run import Run
from outlive._tasks import own_task
from outlive.engine.view import View
from outlive.errors import StoreUnavailableError
from outlive.http.problem import RETRY_SECONDS, Problem, malformed
from outlive.http.sse import ALIVE, ALIVE_SECONDS, FIRST, ID_CHARACTERS_MAX, message
from outlive.http.wire.runs import RunsFollowQuery

LOOK_SECONDS = 1.0
LOOK_SECONDS_MAX = 10.0
"""A list rests no longer than this, however long its last look took."""
LOOK_REST = 20
"""A list rests this many times as long as its last look took, if that is more than `LOOK_SECONDS`."""
LOOKS_SHARE = 0.25
"""The share of the time that all lists of a server may be looked at."""
PAUSE_SECONDS_MAX = 1.0
"""The longest pause between two looks: a slow store is not a busy server."""
LISTS_MAX = 20
MINUTE = timedelta(minutes=1)
DIGEST_BYTES = 6


class Row(NamedTuple):
    """A run as a list shows it."""

    digest: bytes
    """Another one when anything of the row changes."""
    message: bytes


Rows = dict[str, Row]
"""A page of a list, by the ids of its runs. It is never changed: all its readers have the same one."""


class ListedRuns(msgspec.Struct, frozen=True):
    """The runs of a list, in its order."""

    ids: list[str]


class GoneRun(msgspec.Struct, frozen=True):
    """A run that is in a list no longer."""

    id: str


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
        """The messages for a reader that has the rows before."""
        self.changed = asyncio.Event()
        """Replaced by another one with each change."""
        self.readers: Counter[str] = Counter()
        """By the id of the principal."""
        self.task: asyncio.Task[None] | None = None
        self.error: BaseException | None = None

    def show(self, views: list[Run]) -> None:
        """Set the rows that the list shows now."""
        rows: Rows = {}
        for view in views:
            digest = _digest_of(view)
            known = None if self.rows is None else self.rows.get(view.id)
            rows[view.id] = known if known and known.digest == digest else Row(digest, message("run", view))
        if rows != self.rows:
            self._before, self.rows = self.rows, rows
            self._position = _position_of(row.digest for row in rows.values())
            (self._list,) = self._marked([message("list", ListedRuns(list(rows)))])
            self._changes = [] if self._before is None else self._marked(_changes(self._before, rows))
            self.ring()

    def whole(self, known: frozenset[bytes]) -> list[bytes]:
        """The first messages for a reader that knows these rows: the other rows, and the ids of all."""
        rows = self.rows or {}
        return [*(row.message for row in reversed(rows.values()) if row.digest not in known), self._list]

    def changes_since(self, shown: Rows) -> list[bytes]:
        """The messages for a reader that was shown these rows. All readers that have kept pace are sent the same."""
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


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


async def _rest(seconds: float) -> None:
    await Bell().wait(seconds)


class LookBudget:
    """The time that all lists of a server may be looked at: one look at a time, and a pause after each."""

    def __init__(
        self, *, now: Callable[[], float] = _loop_time, sleep: Callable[[float], Awaitable[None]] = _rest
    ) -> None:
        self._now, self._sleep = now, sleep
        self._line = asyncio.Lock()
        self._free_at = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the next turn, and look; lists have their turns in the order in which they came."""
        async with self._line:
            if (wait := self._free_at - self._now()) > 0:
                await self._sleep(wait)
            began = self._now()
            try:
                yield
            finally:
                took = self._now() - began
                self._free_at = began + took + min(took * (1 / LOOKS_SHARE - 1), PAUSE_SECONDS_MAX)


def rest_after(took: float) -> float:
    """The seconds for which a list rests after a look that took so long."""
    return max(LOOK_SECONDS, min(LOOK_REST * took, LOOK_SECONDS_MAX))


class OwnLists:
    """The lists that one principal follows."""

    def __init__(self) -> None:
        self.readers: Counter[bytes] = Counter()
        """By the key of the list."""
        self.line = asyncio.Lock()
        """One of its lists at a time waits for a turn: a principal with many lists does not make others wait longer."""


class LivePages:
    """The lists that are followed, each looked at once for all its readers.

    Args:
        lists_max: how many different lists one principal may follow at once.
    """

    def __init__(self, lists_max: int = LISTS_MAX) -> None:
        self._lists_max = lists_max
        self._pages: dict[bytes, LivePage] = {}
        self._budget = LookBudget()
        self._own: dict[str, OwnLists] = {}
        """By the id of a principal."""

    def check(self, query: RunsFollowQuery, *, of: str, by: str) -> None:
        """See that a principal may follow one more reader's list.

        Raises:
            Problem: it follows too many other lists.
        """
        if not self._has_room(_key_of(query, of), by):
            raise Problem(
                429,
                "too_many_lists",
                f"this key or person follows {self._lists_max} different lists of runs, and may follow no more",
                "End the follow of another list, or follow one of them again.",
                {"retry-after": str(RETRY_SECONDS)},
            )

    def _has_room(self, key: bytes, by: str) -> bool:
        lists = self._own[by].readers if by in self._own else {}
        return key in lists or len(lists) < self._lists_max

    async def follow(
        self, view: View, query: RunsFollowQuery, *, of: str, by: str = "", known: frozenset[bytes] = frozenset()
    ) -> AsyncGenerator[bytes, None]:
        """The runs of a list that are not known, the ids of all of them, then every run that is new, has changed, or is
        in the list no longer. The last message of each look has an id.

        Lists of the same query and `of` the same namespace are one. Nothing comes if the principal has begun to follow
        too many other lists since `check`.

        Args:
            by: the id of the principal.
            known: what the reader has, as `read_known` gives it.
        """
        key = _key_of(query, of)
        if not self._has_room(key, by):
            return
        own = self._own.setdefault(by, OwnLists())
        own.readers[key] += 1
        page = self._pages.setdefault(key, LivePage())
        page.readers[by] += 1
        if page.task is None:
            page.task = own_task(self._look(page, view, query), name="outlive-http-list")
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
            own.readers -= Counter([key])
            if not own.readers:
                del self._own[by]
            page.readers -= Counter([by])
            if not page.readers:
                del self._pages[key]
                page.task.cancel()

    async def _look(self, page: LivePage, view: View, query: RunsFollowQuery) -> None:
        try:
            while True:
                async with self._turn(page):
                    began = _loop_time()
                    with suppress(StoreUnavailableError):
                        found = await view.runs(order="-created_at", limit=query.limit, after=None, **query.filters())
                        page.show(found)
                    took = _loop_time() - began
                await _rest(rest_after(took))
        except Exception as error:
            page.error = error
            page.ring()

    @asynccontextmanager
    async def _turn(self, page: LivePage) -> AsyncIterator[None]:
        """Wait for a turn in the line of the reader with the fewest lists."""
        own = min((self._own[by] for by in page.readers), key=lambda it: len(it.readers))
        async with own.line, self._budget.turn():
            yield


def _key_of(query: RunsFollowQuery, of: str) -> bytes:
    return msgspec.json.encode([query, of])


def in_whole_minutes(query: RunsFollowQuery) -> RunsFollowQuery:
    """One list for all readers that ask within a minute: `since` is rounded down, and `until` up."""
    since, until = query.since, query.until
    try:
        if since is not None:
            since = _minute_of(since)
        if until is not None and until != _minute_of(until):
            until = _minute_of(until) + MINUTE
    except OverflowError:  # The last minute that there is.
        return query
    return msgspec.structs.replace(query, since=since, until=until)


def _minute_of(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0)


def _changes(before: Rows, now: Rows) -> list[bytes]:
    """The messages for a reader that has the rows before.

    A run goes before the one whose place it has taken: a reader that shows more of the list than this page can tell
    that one from a run that is in the list no longer.
    """
    digests = {run_id: row.digest for run_id, row in before.items()}
    parts = [row.message for run_id, row in reversed(now.items()) if digests.get(run_id) != row.digest]
    return parts + [message("gone", GoneRun(run_id)) for run_id in before if run_id not in now]


def _digest_of(view: Run) -> bytes:
    said = msgspec.json.encode([view.id, view.updated_at, view.status, view.waits, view.approvals])
    return blake2b(said, digest_size=DIGEST_BYTES).digest()


def _position_of(digests: Iterable[bytes]) -> bytes:
    """The knowledge of a reader that has all of these rows; nothing if that is too long for a header."""
    found = b"=" + urlsafe_b64encode(b"".join(digests))
    return found if len(found) <= ID_CHARACTERS_MAX else b""


def read_known(text: str) -> frozenset[bytes]:
    """The rows that a reader has who sends this as `Last-Event-ID`.

    Raises:
        Problem: it is not an id of ours.
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
