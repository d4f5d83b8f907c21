"""`outlive.map`: one step or workflow for many items, each durable on its own.

Each item has a scope of its own, numbered by its place in the input: what becomes of item 7 has the same identity in
the journal whether it is begun first or last, and however many are under way at once. The items are taken one by one
by as many lanes as `concurrency` says, so ten thousand items are never ten thousand tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from outlive._kernel.define.step import Step
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.model import given
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.replay.frame import SCOPE, Scope
from outlive.errors import ArgumentTypeError, ConfigurationError, ToleranceExceededError

T = TypeVar("T")
R = TypeVar("R")

CONCURRENCY = 10


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How many items of a map may fail: a number, a share of all items, or, with both, whatever is less."""

    failures: int | None = None
    ratio: float | None = None

    def __post_init__(self) -> None:
        if self.failures is None and self.ratio is None:
            raise ConfigurationError("Tolerance(): give failures=, ratio= or both")
        if self.failures is not None:
            given.keep(self, failures=given.whole("Tolerance", "failures", self.failures, least=0))
        if self.ratio is not None:
            given.keep(self, ratio=given.number("Tolerance", "ratio", self.ratio, least=0, most=1, like=0.1))

    def allows(self, failed: int, items: int) -> bool:
        """Whether this many failures among this many items are tolerated."""
        is_few = self.failures is None or failed <= self.failures
        return is_few and (self.ratio is None or failed <= self.ratio * items)

    def __str__(self) -> str:
        limits = [] if self.failures is None else [str(self.failures)]
        return " and ".join(limits + ([] if self.ratio is None else [f"{self.ratio:.0%} of them"]))


@overload
async def map(
    work: Callable[[T], Coroutine[object, None, R]],
    items: Iterable[T],
    *,
    concurrency: int = ...,
    tolerate: None = None,
) -> list[R]: ...
@overload
async def map(
    work: Callable[[T], Coroutine[object, None, R]], items: Iterable[T], *, concurrency: int = ..., tolerate: Tolerance
) -> list[R | Exception]: ...
async def map(
    work: Callable[[T], Coroutine[object, None, R]],
    items: Iterable[T],
    *,
    concurrency: int = CONCURRENCY,
    tolerate: Tolerance | None = None,
) -> Any:
    """Call a step or a workflow for each item; the results, in the order of the items.

    Without `tolerate` the first failure cancels the rest and is raised. With it the exception of a failed item stands
    in the list in place of its result.

    Args:
        work: a step or a workflow that takes one argument.
        items: any iterable; read as items are begun (all at once if `tolerate` has a ratio).
        concurrency: how many items are under way at once, at most.
        tolerate: how many may fail.

    Raises:
        ToleranceExceededError: more have failed than are tolerated; the rest is cancelled.
    """
    where = "outlive.map"
    if not isinstance(work, Step | Workflow):
        wanted = "give it a step or a workflow, a function decorated with @outlive.step or @outlive.workflow"
        raise ArgumentTypeError(where, "work", work, wanted)
    if tolerate is not None:
        given.instance(where, "tolerate", tolerate, Tolerance, like="outlive.limits.Tolerance(failures=5)")
    lanes = given.whole(where, "concurrency", concurrency)
    return await _Map(work, given.many(where, "items", items), tolerate).run(lanes)


class _Map(Generic[R]):
    """One map under way."""

    def __init__(
        self, work: Step[[Any], R] | Workflow[[Any], R], items: Iterable[Any], tolerate: Tolerance | None
    ) -> None:
        self._work = work
        self._tolerate = tolerate
        self._count = 0
        if tolerate is not None and tolerate.ratio is not None:
            items = list(items)
            self._count = len(items)
        self._items: Iterator[tuple[int, Any]] = enumerate(items)
        self._results: dict[int, R | Exception] = {}
        self._failed: dict[int, Exception] = {}
        self._error: BaseException | None = None
        self._lanes: list[asyncio.Task[None]] = []

    async def run(self, concurrency: int) -> list[R | Exception]:
        """Run all items."""
        place = SCOPE.get().branch() if current_execution() is not None else None
        here = None if place is None else SCOPE.set(place.item(0))
        try:
            for _ in range(concurrency):
                first = next(self._items, None)
                if first is None:
                    break
                self._lanes.append(asyncio.create_task(self._lane(place, first)))
        except Exception as error:  # The user's iterable may raise anything.
            self._stop(error)
        finally:
            if here is not None:
                SCOPE.reset(here)
        await self._end()
        if self._error is not None:
            raise self._error
        return [self._results[index] for index in range(len(self._results))]

    async def _end(self) -> None:
        """Wait for the lanes; a map that is cancelled cancels them and waits for them all the same."""
        cancelled: asyncio.CancelledError | None = None
        while open_lanes := [lane for lane in self._lanes if not lane.done()]:
            try:
                await asyncio.wait(open_lanes)
            except asyncio.CancelledError as error:
                cancelled = error
                self._stop(error)
        for lane in self._lanes:
            # It was not cancelled here, or it raised what is not a failure of an item.
            self._error = self._error or (asyncio.CancelledError() if lane.cancelled() else lane.exception())
        if cancelled is not None:
            raise cancelled

    async def _lane(self, place: Scope | None, first: tuple[int, Any]) -> None:
        taken: tuple[int, Any] | None = first
        while taken is not None and self._error is None:
            index, item = taken
            if place is not None:
                SCOPE.set(place.item(index + 1))
            try:
                self._results[index] = await self._call(item)
            except Exception as error:  # An error that the item raises is its outcome.
                self._fail(index, error)
            try:
                taken = next(self._items, None)
            except Exception as error:
                self._stop(error)

    def _call(self, item: Any) -> Any:
        work = self._work
        is_plain = isinstance(work, Step) and not work.spec.is_async and work.spec.resources is None
        if is_plain and current_execution() is None:
            # Outside of a run a sync step is a plain function that blocks.
            return asyncio.to_thread(work, item)
        return work(item)

    def _fail(self, index: int, error: Exception) -> None:
        self._failed[index] = self._results[index] = error
        if self._tolerate is None:
            self._stop(error)
        elif not self._tolerate.allows(len(self._failed), self._count):
            self._stop(ToleranceExceededError(self._failed, str(self._tolerate)))

    def _stop(self, error: BaseException) -> None:
        """Begin nothing more, and cancel what is under way."""
        if self._error is None:
            self._error = error
        this = asyncio.current_task()
        for lane in self._lanes:
            if lane is not this:
                lane.cancel()
