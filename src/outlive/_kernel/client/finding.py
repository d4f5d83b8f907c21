"""Finding runs: what users ask for becomes a filter of the store, and its answers become pages.

A cursor says where a page ends and on which side of that place the next one lies. It holds the place itself, the
instant of creation and the id, and no number of a page: runs that come and go meanwhile neither repeat nor hide others.
"""

from __future__ import annotations

import builtins
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Generic, Literal, TypedDict, TypeVar, Unpack

import msgspec

from outlive._kernel.client.access import Access
from outlive._kernel.model import Run, RunFilter, RunStatus, given
from outlive._kernel.model.id import ID_CHARACTERS_MAX
from outlive._kernel.model.instant import microseconds_of
from outlive._kernel.model.queue import DEFAULT as DEFAULT_QUEUE
from outlive._kernel.model.queue import queue_names
from outlive._kernel.model.run import GroupField, group_of
from outlive._kernel.replay.loop import TIMER
from outlive._kernel.store.contract import PAGE_SIZE_MAX
from outlive._kernel.values.count import Count
from outlive.errors import InvalidArgumentError

COUNT_MAX = 10_000
"""How many runs `engine.count` counts unless it is asked for more or fewer."""
COUNT_LIMIT_MAX = 1_000_000
IDS_MAX = 1_000
"""How many ids one list may be given."""
GROUPS_MAX = 1_000
"""How many groups `engine.count_by` answers with."""
GROUP_FIELDS: tuple[GroupField, ...] = ("status", "workflow", "queue")
VERSION_MAX = 2**53 - 1
"""The largest whole number that every reader of JSON takes; the version of a flow has 48 bits."""

T = TypeVar("T")
Order = Literal["-created_at", "created_at"]
Statuses = RunStatus | str | Iterable[RunStatus | str]


class RunFilters(TypedDict, total=False):
    """The filters of lists, counts and verbs for many runs; a run must pass all of them."""

    status: Statuses | None
    """One status or several."""
    tags: Mapping[str, str] | None
    """All of these tags, with these values."""
    ids: Iterable[str] | None
    """One of these ids, at most 1,000."""
    version: int | None
    """The version of the workflow."""
    parent_id: str | None
    """Started as a child by the run with this id; the parent's own children only."""
    id_prefix: str | None
    """A prefix of the id."""
    since: datetime | None
    """Created at this instant or later."""
    until: datetime | None
    """Created before this instant."""
    finished_since: datetime | None
    """Ended at this instant or later."""
    finished_until: datetime | None
    """Ended before this instant."""
    waiting_for: str | None
    """Waits for a signal, an ask or an approval of this name, or for the run with this id; `"@timer"`: a timer will
    wake it."""
    error: str | None
    """Failed with an exception of this class: its name, with as much of its module before it as one likes."""
    queue: str | None
    """Started in the queue of this name; `"default"`: in none."""


class Filters(RunFilters, total=False):
    """The filters of `engine.list` and `engine.count`; a run must pass all of them."""

    workflow: str | None
    """The name of the workflow."""
    roots_only: bool
    """No child runs."""
    internal: bool
    """Include runs that the engine makes for itself: chunks of batches, verbs for many runs, requests to retry or fork.
    A list of one workflow has its runs whatever this says."""


class Page(list[T], Generic[T]):
    """A part of a list, and where the parts on both sides of it begin. It is a list itself."""

    def __init__(self, items: Iterable[T] = (), *, next: str | None = None, previous: str | None = None) -> None:  # noqa: A002
        super().__init__(items)
        self.next = next
        """Give it as `after` to get the next page; None if this is the last one."""
        self.previous = previous
        """Give it as `after` to get the page before this one; None if this is the first one."""


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """A place in a list, and the side of it that is meant."""

    order: str
    is_back: bool
    at: int
    id: str

    def write(self) -> str:
        """The cursor as text, for users."""
        return urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


def read_cursor(where: str, after: object, order: str) -> Cursor | None:
    """Read the cursor that a user gives as `after`.

    Raises:
        InvalidArgumentError: it is not a cursor, or one of a list in another order.
    """
    if after is None:
        return None
    text = given.text(where, "after", after, like="the `next` of another page", most=given.TEXT_CHARACTERS_MAX)
    try:
        cursor = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Cursor)
    except ValueError:
        wanted = "give `next` or `previous` of another page, as it is"
        raise InvalidArgumentError(where, "after", after, wanted) from None
    if cursor.order != order:
        wanted = f"it is of a list in the order {cursor.order}, and this one has {order}; give the same order"
        raise InvalidArgumentError(where, "after", after, wanted)
    return cursor


def page_of(found: builtins.list[T], cursors: tuple[str, str] | None, *, limit: int, came_by: Cursor | None) -> Page[T]:
    """A page of what was found: one more than it holds if there is more. `cursors` are of its last and its first."""
    has_more, is_back = len(found) > limit, came_by is not None and came_by.is_back
    items = found[:limit][::-1] if is_back else found[:limit]
    if not items or cursors is None:
        return Page()
    last, first = cursors
    return Page(
        items,
        next=last if is_back or has_more else None,
        previous=first if (has_more if is_back else came_by) else None,
    )


class Finder:
    """Lists and counts runs."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(
        self,
        *,
        order: Order = "-created_at",
        limit: int = 100,
        after: str | None = None,
        **filters: Unpack[Filters],
    ) -> Page[Run]:
        """A page of the runs that fit. See `Engine.list`."""
        where = "engine.list"
        return await self.page(where, filter_of(where, **filters), order=order, limit=limit, after=after)

    async def page(self, where: str, wanted: RunFilter, *, order: Order, limit: int, after: str | None) -> Page[Run]:
        """A page of the runs that pass a filter."""
        count = given.whole(where, "limit", limit, most=PAGE_SIZE_MAX)
        order = given.one_of(where, "order", order, ("-created_at", "created_at"))  # type: ignore[assignment]
        cursor = read_cursor(where, after, order)
        is_back = cursor is not None and cursor.is_back
        found = await self._find(
            wanted,
            limit=count + 1,
            place=None if cursor is None else (cursor.at, cursor.id),
            oldest_first=(order == "created_at") is not is_back,
        )
        first, last = (found[0], found[:count][-1]) if found else (None, None)
        if is_back:
            first, last = last, first
        cursors = None
        if first is not None and last is not None:
            cursors = (
                Cursor(order, is_back=False, at=last.created_at, id=last.id).write(),
                Cursor(order, is_back=True, at=first.created_at, id=first.id).write(),
            )
        return page_of(found, cursors, limit=count, came_by=cursor)

    async def _find(
        self, wanted: RunFilter, *, limit: int, place: tuple[int, str] | None, oldest_first: bool
    ) -> builtins.list[Run]:
        """At most `limit` runs behind a place."""
        store = self._access.store
        damaged = RunStatus.DAMAGED in wanted.statuses
        # No row says of itself that it cannot be read, so all that fit otherwise are looked at.
        asked = msgspec.structs.replace(wanted, statuses=()) if damaged else wanted
        found: builtins.list[Run] = []
        while len(found) < limit:
            size = PAGE_SIZE_MAX if damaged else min(limit - len(found), PAGE_SIZE_MAX)
            side = {"after": place} if oldest_first else {"before": place}
            page = await store.list_runs(asked, limit=size, oldest_first=oldest_first, **side)
            found += [run for run in page if not damaged or run.status in wanted.statuses]
            if len(page) < size:
                break
            place = page[-1].created_at, page[-1].id
        return found[:limit]

    async def count(self, *, limit: int = COUNT_MAX, **filters: Unpack[Filters]) -> Count:
        """How many runs fit. See `Engine.count`."""
        where = "engine.count"
        wanted = filter_of(where, **filters)
        most = given.whole(where, "limit", limit, most=COUNT_LIMIT_MAX)
        if RunStatus.DAMAGED in wanted.statuses:
            found = len(await self._find(wanted, limit=most + 1, place=None, oldest_first=False))
        else:
            found = await self._access.store.count_runs(wanted, limit=most + 1)
        return Count(min(found, most), at_least=found > most)

    async def count_by(self, by: GroupField, *, limit: int = COUNT_MAX, **filters: Unpack[Filters]) -> dict[str, Count]:
        """How many runs fit, by their status, workflow or queue. See `Engine.count_by`."""
        where = "engine.count_by"
        given.one_of(where, "by", by, GROUP_FIELDS)
        wanted = filter_of(where, **filters)
        most = given.whole(where, "limit", limit, most=COUNT_LIMIT_MAX)
        if RunStatus.DAMAGED in wanted.statuses:
            runs = await self._find(wanted, limit=most + 1, place=None, oldest_first=False)
            found = dict(sorted(Counter(group_of(run, by) for run in runs).items()))
        else:
            store = self._access.store
            found = await store.count_groups(wanted, by, limit=most + 1, groups_max=GROUPS_MAX + 1)
        if len(found) > GROUPS_MAX:
            narrower = f"narrow it by a filter: there are more than {GROUPS_MAX:,} groups"
            raise InvalidArgumentError(where, "by", by, narrower)
        if by == "status":
            found = {status.value: found[status.value] for status in RunStatus if status.value in found}
        return {
            group or DEFAULT_QUEUE: Count(min(number, most), at_least=number > most) for group, number in found.items()
        }


def filter_of(
    where: str,
    *,
    status: Statuses | None = None,
    workflow: str | None = None,
    tags: Mapping[str, str] | None = None,
    ids: Iterable[str] | None = None,
    version: int | None = None,
    parent_id: str | None = None,
    id_prefix: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    finished_since: datetime | None = None,
    finished_until: datetime | None = None,
    waiting_for: str | None = None,
    error: str | None = None,
    queue: str | None = None,
    roots_only: bool = False,
    internal: bool = False,
    **unknown: Any,
) -> RunFilter:
    """The filter for the runs that a user wants to find, after a check of each part."""
    for name in unknown:
        near = get_close_matches(name, Filters.__annotations__, 1)
        advice = f"; did you mean {near[0]!r}?" if near else f"; it knows {', '.join(Filters.__annotations__)}"
        raise TypeError(f"{where}() has no filter {name!r}{advice}")
    if waiting_for is not None:
        waiting_for = given.text(where, "waiting_for", waiting_for, like="paid", most=ID_CHARACTERS_MAX)
    return RunFilter(
        statuses=_statuses(where, status),
        workflow=None if workflow is None else given.text(where, "workflow", workflow, like="order"),
        tags=given.tags(where, tags),
        ids=_ids(where, ids),
        version=None if version is None else given.whole(where, "version", version, most=VERSION_MAX),
        parent_id=None
        if parent_id is None
        else given.text(where, "parent_id", parent_id, like="order-7", most=ID_CHARACTERS_MAX),
        id_prefix=None
        if id_prefix is None
        else given.text(where, "id_prefix", id_prefix, like="order-", least=0, most=ID_CHARACTERS_MAX),
        since_at=_instant(where, "since", since),
        until_at=_instant(where, "until", until),
        finished_since_at=_instant(where, "finished_since", finished_since),
        finished_until_at=_instant(where, "finished_until", finished_until),
        waiting_for=None if waiting_for == TIMER else waiting_for,
        sleeps=waiting_for == TIMER,
        error=None
        if error is None
        else given.text(where, "error", error, like="CardDeclined", most=given.KEY_CHARACTERS_MAX),
        queue=None if queue is None else queue_names(where, [queue])[0],
        roots_only=given.flag(where, "roots_only", roots_only),
        hides_internal=not (given.flag(where, "internal", internal) or _asks_for_internal(workflow, tags, id_prefix)),
    )


def _asks_for_internal(workflow: str | None, tags: object, id_prefix: str | None) -> bool:
    """Whether runs that the engine makes for itself are asked for, by their workflow or by an id with a '~', which no
    user can give. With tags none of them fits: so an index of tags alone can still be counted."""
    return workflow is not None or bool(tags) or "~" in (id_prefix or "")


def _instant(where: str, name: str, value: datetime | None) -> int | None:
    return None if value is None else microseconds_of(given.instant(where, name, value))


def _ids(where: str, ids: Iterable[str] | None) -> tuple[str, ...]:
    if ids is None:
        return ()
    several = [ids] if isinstance(ids, str) else given.many(where, "ids", ids)
    found = tuple(
        dict.fromkeys(given.text(where, "ids", each, like="order-7", most=ID_CHARACTERS_MAX) for each in several)
    )
    if not 0 < len(found) <= IDS_MAX:
        wanted = f"give 1 to {IDS_MAX:,} ids, or leave it out for all runs"
        raise InvalidArgumentError(where, "ids", f"{len(found):,} ids", wanted, example=["order-7", "order-8"])
    return found


def _statuses(where: str, status: Statuses | None) -> tuple[RunStatus, ...]:
    if status is None:
        return ()
    several = [status] if isinstance(status, RunStatus | str) else given.many(where, "status", status)
    names = [each.value for each in RunStatus]
    found = tuple(
        each if isinstance(each, RunStatus) else RunStatus(given.one_of(where, "status", each, names))
        for each in several
    )
    if not found:
        wanted = "give one status or several, or leave it out for all"
        raise InvalidArgumentError(where, "status", status, wanted, example=["failed", "parked"])
    return tuple(dict.fromkeys(found))
