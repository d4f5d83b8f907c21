"""Built-ins that call something again and again: `map`, for each item of a list, and `iterate`, until it has a result.

What they call is said in one of three ways: `use` and `with`, as in a step; or `do`, steps that are written in place,
with an `output`. Either is rendered for each item or turn, with `item` and `index` in scope. Item 7 of step `fan` has
the same name in the journal whether it is begun first or last: its calls stand in `fan.7`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from outlive._cel import ANY, BOOL, LIST, MAP, NUMBER
from outlive._features.flows.built_in.contract import BuiltIn, Call
from outlive._features.flows.document.model import SHARE, Document, FlowStep, Span, seconds_of
from outlive._features.flows.run.driver import error_data, run_plan
from outlive._features.flows.run.plan import Plan
from outlive._kernel.define.map import CONCURRENCY, Tolerance
from outlive._kernel.model.remote import queue_and_step
from outlive._kernel.replay.frame import SCOPE
from outlive.errors import ToleranceExceededError
from outlive.errors.document import FlowError, Problem
from outlive.errors.step import FlowStepError

ITEMS_MAX = 100_000
"""A map of more items is a batch."""
ITERATIONS_MAX = 1_000
"""Unless a document says otherwise."""
ITERATIONS_LIMIT = 100_000
BODY = "body"


class Body:
    """The code that is called for each item or turn: a flow of one step, or of the steps in `do`."""

    def __init__(self, id: str, parts: Mapping[str, Any], *, path: tuple[str, ...]) -> None:
        self._is_inline = "do" in parts
        if ("use" in parts) == self._is_inline:
            message = f"step {id}: give either `use` (and `with`), or `do` with `steps` and an `output`"
            raise FlowError([Problem(code="bad-body", message=message, path=("steps", id, "with"))])
        try:
            if self._is_inline:
                document = msgspec.convert({"name": id, **parts["do"]}, Document)
            else:
                step = {name: value for name, value in parts.items() if name != "do"}
                step = msgspec.convert(step, FlowStep)
                document = Document(name=id, steps={BODY: step}, output=f"${{{{ steps.{BODY} }}}}")
        except (msgspec.ValidationError, TypeError) as error:
            message = f"step {id}: {error}"
            raise FlowError([Problem(code="bad-body", message=message, path=("steps", id, "with"))]) from None
        self.plan = Plan(document, path=path)
        if not self._is_inline:
            # The name of a remote step without its queue: names in a journal are parted by the same mark.
            self.plan.steps[BODY].name = queue_and_step(str(parts["use"]))[1]
        self.references = self.plan.references
        self.uses = self.plan.uses

    def resolve(self, id: str) -> None:
        """Look up what it calls.

        Raises:
            FlowError: that is not there.
        """
        self.plan.resolve()

    async def run(self, call: Call, number: int, item: Any) -> Any:
        """Call it for one item; the scope of the caller has its number."""
        return await run_plan(self.plan, {**call.scope, "item": item, "index": number})


class MapArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `map`, besides `use` and `with`, or `do`."""

    items: list[Any]
    concurrency: Annotated[int, Meta(ge=1)] = CONCURRENCY
    """How many items are under way at once."""
    tolerate: int | float | Annotated[str, Meta(pattern=SHARE)] = 0
    """How many items may fail: a number, or a share such as "10%"."""


class MapItems:
    """Calls something for each item of a list, each durable on its own.

    Its result has `results` in the order of the items (null for one that failed), `successful` and `failed` as numbers,
    and `errors`, with `index`, `type` and `message` of each failure.
    """

    name = "map"
    arguments = MapArguments
    deferred = frozenset(
        {"use", "with", "do", "retry", "timeout", "on_error", "heartbeat_timeout", "limit", "once", "queue"}
    )
    is_control = True
    result = MAP({"results": LIST(ANY), "successful": NUMBER, "failed": NUMBER, "errors": LIST(ANY)})

    def prepare(self, id: str, parts: Mapping[str, Any], *, path: tuple[str, ...]) -> Body:
        """The code that is called for each item."""
        return Body(id, parts, path=path)

    async def run(self, call: Call, given: MapArguments) -> Any:
        """See `BuiltIn`."""
        if len(given.items) > ITEMS_MAX:
            raise FlowStepError(call.id, f"a map takes {ITEMS_MAX:,} items, and has {len(given.items):,}; use a batch")
        return await _Items(call, given, _tolerance(given.tolerate)).run()


def _tolerance(said: int | float | str) -> Tolerance:
    if isinstance(said, str):
        return Tolerance(ratio=float(said.removesuffix("%")) / 100)
    return Tolerance(failures=said) if isinstance(said, int) else Tolerance(ratio=said)


class _Items:
    """One map under way: as many lanes as run at once, each takes one item after the other."""

    def __init__(self, call: Call, given: MapArguments, tolerance: Tolerance) -> None:
        self._call, self._given, self._tolerance = call, given, tolerance
        self._next = 0
        self._results: list[Any] = [None] * len(given.items)
        self._errors: dict[int, Exception] = {}
        self._error: BaseException | None = None

    async def run(self) -> Any:
        place, items = SCOPE.get(), self._given.items
        lanes = [asyncio.create_task(self._lane(place)) for _ in range(min(self._given.concurrency, len(items)))]
        try:
            while open_lanes := [lane for lane in lanes if not lane.done()]:
                await asyncio.wait(open_lanes, return_when=asyncio.FIRST_EXCEPTION)
                if self._error is not None:
                    for lane in open_lanes:
                        lane.cancel()
        except asyncio.CancelledError:
            await _stop(lanes)
            raise
        for lane in lanes:
            if not lane.cancelled():
                self._error = self._error or lane.exception()  # An error of a lane is not a failure of an item.
        if self._error is not None:
            raise self._error
        errors = [{"index": index, **error_data(error)} for index, error in sorted(self._errors.items())]
        failed = len(errors)
        return {"results": self._results, "successful": len(items) - failed, "failed": failed, "errors": errors}

    async def _lane(self, place: Any) -> None:
        items = self._given.items
        while self._next < len(items) and self._error is None:
            index = self._next
            self._next += 1
            SCOPE.set(place.item(index))
            try:
                self._results[index] = await self._call.later.run(self._call, index, items[index])
            except Exception as error:  # An error that the item raises is its outcome.
                self._errors[index] = error
                if not self._tolerance.allows(len(self._errors), len(items)):
                    self._error = error if len(self._errors) == 1 else self._exceeded()
                    raise

    def _exceeded(self) -> ToleranceExceededError:
        return ToleranceExceededError(self._errors, str(self._tolerance))


async def _stop(tasks: list[asyncio.Task[None]]) -> None:
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        try:
            await asyncio.wait(left)
        except asyncio.CancelledError:
            continue


class IterateArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `iterate`, besides `use` and `with`, or `do`."""

    start: Any = None
    """`item` of the first turn."""
    max_iterations: Annotated[int, Meta(ge=1, le=ITERATIONS_LIMIT)] = ITERATIONS_MAX
    every: Span | None = None
    """How long to wait between two turns."""


class Iterate:
    """Calls something until it gives `{result: ...}`; while it gives `{next: ...}`, that is `item` of the next turn.

    Its result has `result`, `iterations`, and `terminated`: whether it was stopped by `max_iterations`, with the last
    `next` as its result.
    """

    name = "iterate"
    arguments = IterateArguments
    deferred = MapItems.deferred
    is_control = True
    result = MAP({"result": ANY, "iterations": NUMBER, "terminated": BOOL})

    def prepare(self, id: str, parts: Mapping[str, Any], *, path: tuple[str, ...]) -> Body:
        """The code that is called in each turn."""
        return Body(id, parts, path=path)

    async def run(self, call: Call, given: IterateArguments) -> Any:
        """See `BuiltIn`."""
        place, item = SCOPE.get(), given.start
        for index in range(given.max_iterations):
            SCOPE.set(place.item(index))
            if index and given.every is not None:
                await asyncio.sleep(seconds_of(given.every))
            answer = await call.later.run(call, index, item)
            if not isinstance(answer, dict) or len(answer.keys() & {"next", "result"}) != 1:
                reason = 'what a turn gives is an object with either "next" or "result"'
                raise FlowStepError(call.id, f"{reason}, and turn {index} gave {_short(answer)}")
            if "result" in answer:
                return {"result": answer["result"], "iterations": index + 1, "terminated": False}
            item = answer["next"]
        return {"result": item, "iterations": given.max_iterations, "terminated": True}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


BUILT_INS: dict[str, BuiltIn] = {each.name: each for each in (MapItems(), Iterate())}
