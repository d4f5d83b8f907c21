"""Names that mean something inside a run."""

from __future__ import annotations

import asyncio
import inspect
import random as _random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar, TypeVarTuple, Unpack, overload
from uuid import UUID
from uuid import uuid4 as _uuid4

from outlive._kernel.define.gathered import DetachedOptions, named_arguments, said_of, start_with
from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.talking import OtherRun
from outlive._kernel.define.workflow import Bound, Startable, bound
from outlive._kernel.journal.value import codec_for_message
from outlive._kernel.model import check_run_id, child_id, given
from outlive._kernel.model.instant import instant_of
from outlive._kernel.replay.ask import (
    cancel_detached,
    child_result,
    current_execution,
    end_of,
    read_or_park,
    start_child,
    start_detached,
    take_signal,
    this_execution,
)
from outlive._kernel.replay.ending import result_of
from outlive._kernel.replay.frame import SCOPE
from outlive._kernel.replay.serving import count_open
from outlive.errors import ArgumentTypeError, ConfigurationError, InvalidArgumentError
from outlive.errors.program import NotInRunError

T = TypeVar("T")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")


# -- Time and chance -----------------------------------------------------------------------------------------


def now() -> datetime:
    """The time: in a run that of its last event, so every replay sees the same; in a step, the engine's; outside, the
    clock's."""
    execution = current_execution()
    if execution is not None:
        return instant_of(execution.loop.now_at)
    step = CURRENT_STEP.get(None)
    return datetime.now(UTC) if step is None else instant_of(step.now_at())


def random() -> float:
    """A number in [0, 1): in a run the same in every replay."""
    return _random.random() if current_execution() is None else SCOPE.get().random().random()


def uuid4() -> UUID:
    """A random UUID: in a run the same in every replay."""
    if current_execution() is None:
        return _uuid4()
    return UUID(int=SCOPE.get().random().getrandbits(128), version=4)


async def sleep_until(when: datetime) -> None:
    """Wait until an instant, durably; an instant in the past is now."""
    when = given.instant("outlive.sleep_until", "when", when)
    await asyncio.sleep(max(0.0, (when - now()).total_seconds()))


# -- The world -----------------------------------------------------------------------------------------------


@overload
async def wait_for_signal(name: str) -> Any: ...
@overload
async def wait_for_signal(name: str, kind: type[T]) -> T: ...
async def wait_for_signal(name: str, kind: Any = Any) -> Any:
    """Wait for the next signal of this name, as a value of type `kind`.

    A signal that came early is taken at once, first in first out.
    """
    execution = this_execution("wait_for_signal")
    wanted = given.text("outlive.wait_for_signal", "name", name, like="paid")
    return await take_signal(execution, wanted, codec_for_message(given.kind("outlive.wait_for_signal", "kind", kind)))


async def wait_condition(condition: Callable[[], object]) -> None:
    """Wait until a function of the workflow's own state answers with something true.

        await outlive.wait_condition(lambda: len(votes) == 3)

    It is called whenever an event has moved the run, so it must be quick, change nothing and wait for nothing. What it
    raises is raised here. `asyncio.timeout` bounds the wait.

    Raises:
        NotInRunError: no workflow runs here.
    """
    execution = this_execution("wait_condition")
    execution.refuse_if_dropped()
    holds = given.function("outlive.wait_condition", "condition", condition, like="lambda: done")
    if inspect.iscoroutinefunction(holds):
        wanted = "give a plain function, which is called after each event and cannot wait for anything"
        raise ArgumentTypeError("outlive.wait_condition", "condition", condition, wanted)
    await execution.loop.wait_for(holds)


class Child(Generic[R]):
    """A run that this workflow started."""

    def __init__(self, run_id: str, result: Callable[[], Any], cancel: Callable[[], None]) -> None:
        self.id = run_id
        self._result = result
        self._cancel = cancel

    async def result(self) -> R:
        """Wait, durably, for its result."""
        result: R = await self._result()
        return result

    def cancel(self) -> None:
        """Ask it to stop; `result` then raises `RunCancelledError` once it has, unless it had ended before."""
        self._cancel()

    def __repr__(self) -> str:
        return f"<child {self.id}>"


@overload
async def start(
    workflow: Startable[*Ts, R],
    *args: *Ts,
    detached: bool = False,
    id: str | None = None,
    tags: dict[str, str] | None = None,
    timeout: given.Span | None = None,
    **options: Unpack[DetachedOptions],
) -> Child[R]: ...
@overload
async def start(
    workflow: str,
    arguments: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    detached: Literal[True],
    id: str | None = None,
    tags: dict[str, str] | None = None,
    timeout: given.Span | None = None,
    **options: Unpack[DetachedOptions],
) -> Child[Any]: ...
async def start(  # type: ignore[misc]  # No *Ts is compared.
    workflow: Any,
    *args: Any,
    detached: bool = False,
    id: str | None = None,
    tags: dict[str, str] | None = None,
    timeout: given.Span | None = None,
    **options: Unpack[DetachedOptions],
) -> Child[Any]:
    """Start another run from a workflow.

    Without `detached` it is a child in this tree: it ends, at the latest, with its parent. Detached it is a tree of its
    own, maybe on another worker, and outlives its parent. A detached run takes what `Engine.start` takes, except a
    `connection`; a child takes only `timeout`.

    Args:
        workflow: a workflow or a step; for a detached run also the name of one whose code this program does not have,
            with its arguments by name or in a list.
        id: the same id again is the same run; made of this call unless given.
        tags: text for searching.
        timeout: how long the run may take as a whole.
        options: `on_conflict`, `queue`, `key`, `priority`, `delay`, `start_at`, `begin_within`, `headers`, `debounce`,
            `throttle` and `version`; see `Engine.start`. The run has the headers of this one, and those given.
    """
    execution = this_execution("start")
    where = "outlive.start"
    is_detached = given.flag(where, "detached", detached)
    said = said_of(workflow, options, detached=is_detached)
    seconds = given.some_seconds(where, "timeout", timeout)
    if isinstance(workflow, str):
        if not is_detached:
            raise ConfigurationError(
                "a workflow is given by its name for a run of its own: outlive.start(..., detached=True)"
            )
        named, labels = named_arguments(workflow, args), given.tags(where, tags)
        run_id = await start_with(execution, named, said, id=id, tags=labels, timeout_seconds=seconds)
        return Child(run_id, lambda: OtherRun[Any](run_id, None).result(), lambda: cancel_detached(execution, run_id))
    if "version" in said:
        raise InvalidArgumentError(where, "version", said["version"], "leave it out: the workflow itself has one")
    wanted: Bound[Any] = bound(workflow, args)
    spec = wanted.workflow.spec
    if not is_detached:
        if any(it is not None for it in (id, tags)):
            raise ConfigurationError("id= and tags= are for runs of their own: outlive.start(..., detached=True)")
        call = start_child(execution, spec, wanted.args, wanted.kwargs, timeout_seconds=seconds)
        return Child(
            child_id(execution.root_id, call.command.run),
            lambda: child_result(execution, call),
            lambda: execution.cancel_child(call, "cancelled by its parent"),
        )
    labels = given.tags(where, tags)
    if said:
        run_id = await start_with(execution, wanted, said, id=id, tags=labels, timeout_seconds=seconds)
        kind = spec.signature.result
        return Child(run_id, lambda: OtherRun[Any](run_id, kind).result(), lambda: cancel_detached(execution, run_id))
    run_id = await start_detached(
        execution,
        spec,
        wanted.args,
        wanted.kwargs,
        run_id=None if id is None else check_run_id(id),
        tags=labels,
        timeout_seconds=seconds,
    )
    return Child(run_id, lambda: _detached_result(wanted, run_id), lambda: cancel_detached(execution, run_id))


async def _detached_result(wanted: Bound[R], run_id: str) -> R:
    execution = this_execution("start")
    spec = wanted.workflow.spec
    stored = result_of(await end_of(execution, run_id, started=spec.name), spec.registered)
    return await read_or_park(
        execution, lambda: spec.signature.result.decode(execution.unpack_foreign(stored), f"result of {run_id}")
    )


@dataclass(frozen=True, slots=True)
class RunContext:
    """The facts about its run that a workflow can read, at the moment of asking."""

    id: str
    workflow: str
    version: int
    parent_id: str | None
    """The run that started it: its parent in the tree or, if it was started detached, the root of the other tree."""
    root_id: str
    tags: dict[str, str]
    headers: dict[str, str]
    """The headers that it was started with, or those of the run that started it."""
    created_at: datetime
    events: int
    """How long the journal of its tree is, counted from the last snapshot: the same in every replay."""
    asks_open: int
    """How many asks have no answer that came under a name which the run serves."""
    is_replaying: bool
    """Whether this code has been here before, and is only taken to where the run is. For logs and measurements: a
    workflow that decides by it contradicts its journal."""


def current_run() -> RunContext:
    """The run whose workflow code is running here; in a step, see `current_step`."""
    execution = current_execution()
    if execution is None:
        advice = " (a step has outlive.current_step())" if CURRENT_STEP.get(None) is not None else ""
        raise NotInRunError("current_run", f"a workflow{advice}")
    frame = SCOPE.get().frame
    return RunContext(
        id=frame.id,
        workflow=frame.spec.name,
        version=frame.spec.version,
        parent_id=frame.parent_id,
        root_id=execution.root_id,
        tags=dict(frame.tags),
        headers=dict(execution.headers),
        created_at=instant_of(frame.created_at),
        events=execution.events - execution.base + 1,
        asks_open=count_open(frame),
        is_replaying=execution.is_replaying,
    )


__all__ = [
    "Child",
    "RunContext",
    "current_run",
    "now",
    "random",
    "sleep_until",
    "start",
    "uuid4",
    "wait_condition",
    "wait_for_signal",
]
