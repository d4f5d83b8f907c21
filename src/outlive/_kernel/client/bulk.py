"""One verb for many runs: the runs that pass a filter, oldest first, at most so many at a time, and a preview before.

The verb is called for many of them side by side: stores write what comes together in one transaction, and workers that
have to intervene do so for many runs at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar, Unpack

from msgspec.structs import replace

from outlive._kernel.client.finding import Finder, RunFilters, filter_of
from outlive._kernel.model import Run, RunStatus, given
from outlive._kernel.values.outcome import RunOutcome
from outlive._kernel.values.run import Run as ShownRun
from outlive.errors import InvalidArgumentError, StoreUnavailableError
from outlive.errors.base import message_of

LIMIT = 100
"""How many runs one call is for unless it says so."""
AT_ONCE = 64
"""For how many runs a verb is under way at once."""

T = TypeVar("T")
R = TypeVar("R")
AnyRun = TypeVar("AnyRun", Run, ShownRun)


class BulkFilters(RunFilters, total=False):
    """Which runs of a workflow a verb is for, how many, and whether it only says which."""

    limit: int
    """At most so many, the oldest first; 100 unless given."""
    dry_run: bool
    """Only list the runs: nothing is done."""


class WorkflowFilters(BulkFilters, total=False):
    """Filters for the runs of any workflow."""

    workflow: str | None


class TreeFilters(WorkflowFilters, total=False):
    """Filters that also say whether child runs are meant."""

    roots_only: bool
    """False for child runs too, as `engine.list` finds them; True unless given."""


async def for_each(
    finder: Finder,
    where: str,
    verb: Callable[[str], Awaitable[Any]],
    *,
    statuses: tuple[RunStatus, ...],
    is_for_trees: bool,
    **options: Unpack[TreeFilters],
) -> list[RunOutcome]:
    """Do something to each of the runs that fit; one that refuses does not stop the others.

    `statuses` are meant when the caller names none; `is_for_trees` if the verb does it to the whole tree
    of a child.

    Raises:
        InvalidArgumentError: no filter is given, or a filter has a value that it cannot have.
    """
    filters: dict[str, Any] = dict(options)
    limit, is_preview = filters.pop("limit", LIMIT), filters.pop("dry_run", False)
    roots_only = given.flag(where, "roots_only", filters.pop("roots_only", True))
    given.flag(where, "dry_run", is_preview)
    if all(value is None for value in filters.values()):
        wanted = "give the id of a run, or say by a filter which runs you mean, as the name of their workflow"
        raise InvalidArgumentError(where, "run_id", None, wanted)
    wanted_runs = filter_of(where, **filters)
    wanted_runs = replace(wanted_runs, statuses=wanted_runs.statuses or statuses, roots_only=roots_only)
    found = await finder.page(where, wanted_runs, order="created_at", limit=limit, after=None)
    runs = acted_on(found, is_for_trees=is_for_trees)
    if is_preview:
        return [_outcome(run) for run in runs]
    away: list[StoreUnavailableError] = []

    async def done(run: Run) -> RunOutcome:
        if away:  # Each of the others would wait for the store as long as this one.
            return _outcome(run, error=StoreUnavailableError(away[0].place, away[0].reason))
        try:
            await verb(run.id)
        except Exception as error:  # The others are not to wait for this one.
            if isinstance(error, StoreUnavailableError):
                away.append(error)
            return _outcome(run, error=error)
        return _outcome(run, done=True)

    return [outcome async for outcome in side_by_side(runs, done)]


async def side_by_side(items: Sequence[T], do: Callable[[T], Awaitable[R]]) -> AsyncIterator[R]:
    """Do something to each, `AT_ONCE` of them under way; what came of each in their order, as soon as it is known.

    What `do` raises is raised here, when those under way have ended.
    """
    room = asyncio.Semaphore(AT_ONCE)

    async def done(item: T) -> R:
        async with room:
            return await do(item)

    tasks = [asyncio.ensure_future(done(item)) for item in items]
    try:
        for task in tasks:
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def acted_on(found: Iterable[AnyRun], *, is_for_trees: bool) -> list[AnyRun]:
    """The runs that a verb is called for, among the fitting ones: no child whose root is one of them, because the verb
    reaches it there; and of a verb that is for trees only one run of each."""
    # Earlier runs of an id, and chunks of a batch, are not meant.
    runs = [run for run in found if "~" not in run.root_id]
    roots = {run.id for run in runs if run.number == 0}
    chosen: list[AnyRun] = []
    trees: set[str] = set()
    for run in runs:
        if run.number == 0 or not (run.root_id in roots or (is_for_trees and run.root_id in trees)):
            chosen.append(run)
        trees.add(run.root_id)
    return chosen


def _outcome(run: Run, *, done: bool = False, error: Exception | None = None) -> RunOutcome:
    name, message = ("", "") if error is None else (type(error).__name__, message_of(error))
    return RunOutcome(run.id, run.workflow, run.status.value, done, name, message)
