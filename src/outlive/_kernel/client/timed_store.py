"""The store as callers use it: a verb that gets no answer in time raises.

Workers wait for a store however long it is away, because no run may fail for that. A caller waits for `store_seconds`:
behind a call there is a person, or a web request. A verb that was given up is cancelled. What the store has not begun
by then never happens; of a write that it has begun, or may have, the outcome is not known. The error says which it is.

The cost of a search grows with the runs in the store. So a server lets its callers take turns (`searching`), and the
time of a search begins with its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeVar

from outlive._kernel.journal.checkpoint import CheckpointRow
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.model.run import GroupField
from outlive._kernel.store.contract import Store
from outlive._kernel.store.pending_write import PENDING_WRITE, PendingWrite
from outlive.errors import CommitUnknownError, EngineClosedError, StoreUnavailableError

T = TypeVar("T")
PLACE = "the store"
UNTIMED = frozenset(
    {"begin", "carry_audit", "close", "delete_blobs", "delete_trees", "find_references", "give_back", "keep_blobs"}
    | {"open", "prune_audit"}
    | {"check_database", "examine", "repair"}
)
"""Verbs that may take long, and verbs that only workers use."""
NAMED_MAX = 5
"""Things that an error names."""


About = tuple[set[str], list[str]]
"""The runs that a write is about, and what it is about in words."""


def _runs(run_ids: Iterable[str]) -> About:
    named = list(dict.fromkeys(run_ids))
    return set(named), named


def _checkpoints(run_id: str, row: CheckpointRow | None = None) -> About:
    return {run_id}, [f"the checkpoints of {run_id}" if row is None else f"checkpoint {row[0]} of {run_id}"]


WRITES: dict[str, Callable[..., About]] = {
    "append_checkpoint": _checkpoints,
    "change_cell": lambda name, _: (set(), [f"the cell {name}"]),
    "change_schedules": lambda changes: (set(), [f"the schedule {change.name}" for change in changes]),
    "clear_checkpoints": _checkpoints,
    "commit": lambda changes: _runs(change.runs[0].root_id for change in changes if change.runs),
    "deliver": lambda messages: _runs(message.run_id for message in messages),
    "request_message": lambda _, message: _runs([message.run_id]),
    "request_start": lambda _, change: _runs(run.id for run in change.runs[:1]),
}
"""Verbs after which a caller must know whether they have happened; what each is about, by its arguments."""


class SearchTurn(Protocol):
    """Does a search when it is the turn of its caller, and returns what it returns."""

    async def __call__(self, search: Callable[[], Awaitable[T]], /) -> T:
        """The result of the search. An exception of the search is raised."""


TURN: ContextVar[SearchTurn | None] = ContextVar("outlive-search-turn", default=None)


@contextmanager
def searching(turn: SearchTurn) -> Iterator[None]:
    """Let every search for runs in this block wait for its turn."""
    token = TURN.set(turn)
    try:
        yield
    finally:
        TURN.reset(token)


class _TimedVerbs:
    """The verbs of anything, for callers that wait for so many seconds at most."""

    def __init__(self, inner: Any, *, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._inner, name)
        if name in UNTIMED or not iscoroutinefunction(verb):
            return verb
        timed = partial(self._do, name)
        setattr(self, name, timed)  # The next call does not come here.
        return timed

    async def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        verb: Callable[..., Awaitable[Any]] = getattr(self._inner, name)
        limit = asyncio.timeout(self._seconds)
        write = PendingWrite() if name in WRITES else None
        if write is not None:
            PENDING_WRITE.set(write)
        try:
            async with limit:
                return await verb(*args, **kwargs)
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            if write is not None:
                # Not reset: a call that nothing waits for any more may be closed in another context.
                PENDING_WRITE.set(None)
        silence = f"it has not answered for {self._seconds:g} s"
        if write is None:
            raise StoreUnavailableError(PLACE, silence)
        run_ids, named = WRITES[name](*args)
        asked = f"what was asked of it{f' for {_listed(named)}' if named else ''}"
        if write.is_pending:
            raise StoreUnavailableError(PLACE, f"{silence}; {asked} was not written")
        run_id = run_ids.pop() if len(run_ids) == 1 else ""
        raise unknown(self._seconds, f"{asked} was written", "repeat the call", run_id=run_id)


class TimedStore(_TimedVerbs):
    """Any store, for such callers."""

    def __init__(self, inner: Store, *, seconds: float) -> None:
        super().__init__(inner, seconds=seconds)
        self.now = inner.now
        self._has_ended = False

    def end_searches(self) -> None:
        """The engine has stopped: a search whose turn comes later is refused."""
        self._has_ended = True

    async def list_runs(self, filter: RunFilter, **options: Any) -> list[Run]:  # noqa: A002 (the contract's name)
        """See `Store`."""
        return await self._find(partial(self._do, "list_runs", filter, **options), filter)

    async def count_runs(self, filter: RunFilter, *, limit: int) -> int:  # noqa: A002 (the contract's name)
        """See `Store`."""
        return await self._find(partial(self._do, "count_runs", filter, limit=limit), filter)

    async def count_groups(
        self,
        filter: RunFilter,  # noqa: A002 (the contract's name)
        by: GroupField,
        *,
        limit: int,
        groups_max: int,
    ) -> dict[str, int]:
        """See `Store`."""
        counting = partial(self._do, "count_groups", filter, by, limit=limit, groups_max=groups_max)
        return await self._find(counting, filter)

    async def _find(self, find: Callable[[], Awaitable[T]], wanted: RunFilter) -> T:
        turn = TURN.get()
        if turn is None or not wanted.is_search:
            return await find()

        async def find_in_turn() -> T:
            if self._has_ended:
                raise EngineClosedError("this")
            return await find()

        return await turn(find_in_turn)

    @property
    def examiner(self) -> Any:
        """The examiner of the store; its verbs have the same limit of time."""
        return _TimedVerbs(self._inner.examiner, seconds=self._seconds)


def unknown(seconds: float, what: str, then: str, *, run_id: str = "") -> CommitUnknownError:
    """The error of a write whose outcome is not known."""
    doubt = f"it has not answered for {seconds:g} s, and it is not known whether {what}"
    return CommitUnknownError(PLACE, f"{doubt}; {then} with the same id or key", run_id=run_id)


def _listed(names: list[str]) -> str:
    """Some names, and how many others there are."""
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
