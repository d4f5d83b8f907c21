"""The targets of `use:`, and how a flow calls them: a registered step, a workflow, or a built-in.

A registered step is called as the flow's own step: the journal has it by its id in the flow. A workflow (a function, a
machine or another flow) is a child run in the same tree, or, with a `queue`, a run of its own in that queue whose end
the flow waits for. A built-in is workflow code of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from outlive._features.flows.built_in import find_built_in
from outlive._features.flows.built_in.contract import BuiltIn, Call, plain_call
from outlive._features.flows.document.problems import did_you_mean
from outlive._features.flows.outside.secrets import check_data, granting, grants_in
from outlive._features.flows.run.plain_data import PlainArguments, RenderedArguments, plain_of
from outlive._features.flows.run.policies import TRANSPORT_RETRY
from outlive._kernel.define.registry import BY_NAME, REGISTRY
from outlive._kernel.define.step import NO_RESULT, UNDO_RETRY, as_undo
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.value import Stored, codec_for
from outlive._kernel.model import Retry
from outlive._kernel.model.giver import GIVER, Giver
from outlive._kernel.model.policy import delay_seconds, is_last
from outlive._kernel.replay.ask import (
    cancel_detached,
    child_result,
    end_of,
    read_or_park,
    run_step,
    start_child,
    start_detached,
)
from outlive._kernel.replay.command import StepKind, StepOptions, StepSpec, WorkflowSpec
from outlive._kernel.replay.ending import result_of
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE
from outlive._kernel.replay.saga import find_saga
from outlive.errors.program import WorkflowNotFoundError
from outlive.errors.step import FlowStepError

DEPTH_MAX = 30
"""Flows that call each other, one below the other."""

if TYPE_CHECKING:
    from outlive._features.flows.document.model import Document
    from outlive._features.flows.outside.settings import Route
    from outlive._features.tasks.remote_step import RemoteStep

Scope = Mapping[str, Any]
Render = Callable[[Scope], Any]
References = Collection[tuple[str, ...]]
"""The references of expressions to a scope, if that may be a secret; else nothing."""


class Target(Protocol):
    """The code that a step of a flow calls."""

    has_own_scope: bool
    """Whether what it does stands in a scope with the name of the step; else its one call has that name."""

    async def run(self, execution: Execution, scope: Scope, given: Any) -> Any:
        """Call it; its result as plain data."""


class StepTarget:
    """A registered step."""

    has_own_scope = False

    def __init__(
        self,
        id: str,
        spec: StepSpec,
        options: StepOptions,
        *,
        kind: StepKind | None,
        undo: UndoTarget | None,
        names: References = (),
    ) -> None:
        self._names = names
        self._called = spec.name
        plain = PlainArguments(spec.signature, spec.name)
        self._spec = replace(spec, name=id, known_as=spec.name, signature=plain, kind=kind, options=options)
        self._options, self._undo = options, undo
        self.own_undo = options.undo
        """The undo of the step, though the document says nothing of it."""
        self._options_of_transport = replace(options, retry=TRANSPORT_RETRY)

    async def run(self, execution: Execution, scope: Scope, given: Any) -> Any:
        """See `Target`."""
        options = self._options
        if options.retry is None and execution.retry is None and self._spec.kind is not StepKind.ONCE:
            options = self._options_of_transport
        if self._undo is not None:
            options = replace(options, undo=self._undo.spec(scope))
        spec = self._spec
        if self._names and (grants := grants_in(self._names, scope)):
            spec = replace(spec, fn=granting(spec.fn, grants, to=self._called, is_async=spec.is_async))
        return await run_step(execution, spec, options, (), given)


class WorkflowTarget:
    """A registered workflow: a child run, or a run of its own in a queue."""

    has_own_scope = False

    def __init__(
        self,
        id: str,
        spec: WorkflowSpec,
        *,
        retry: Retry | None = None,
        seconds: float | None = None,
        queue: str | None = None,
        undo: UndoTarget | None = None,
        takes_input: bool = False,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self._id = id
        self._result = spec.signature.result
        self._spec = spec
        if not takes_input:
            self._spec = replace(spec, signature=PlainArguments(spec.signature, spec.name, is_checked=True))
        if queue is not None:
            self._spec = replace(self._spec, queue=queue)
        self._retry, self._seconds, self._undo = retry, seconds, undo
        self._is_detached = queue is not None
        self._takes_input = takes_input
        self._values = {"vars": values} if values else {}
        if values:
            self._spec = replace(self._spec, signature=OfDocument(self._spec.signature))

    async def run(self, execution: Execution, scope: Scope, given: Any) -> Any:
        """See `Target`: tried again as its `retry` says, each time as another run."""
        args, kwargs = ((given,), self._values) if self._takes_input else ((), given)
        return await tried(self._id, self._retry, lambda: self._run(execution, scope, args, kwargs))

    async def _run(self, execution: Execution, scope: Scope, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        spec = self._spec
        if self._is_detached:
            run_id = await start_detached(execution, spec, args, kwargs, timeout_seconds=self._seconds, name=self._id)
            undo = None if self._undo is None else self._undo.spec(scope)
            return await detached_result(execution, spec, run_id, undo=undo, name=self._id)
        _refuse_too_deep(execution, self._id)
        call = start_child(execution, spec, args, kwargs, timeout_seconds=self._seconds, name=self._id)
        if self._undo is not None and (saga := find_saga(f"step {self._id}")) is not None:
            saga.book(call.command.call, self._undo.spec(scope, self._plain)).follow(call.future, SCOPE.get().frame)
        return self._plain(await child_result(execution, call))

    def _plain(self, result: Any) -> Any:
        what = f"result of {self._spec.name}"
        return plain_of(self._result.encode(result, what), what)


def _refuse_too_deep(execution: Execution, id: str) -> None:
    """A document that calls itself would fill the memory of one worker after the other."""
    number, depth = SCOPE.get().frame.number, 1
    while (above := execution.children.get(number)) is not None:
        number, depth = above.command.parent, depth + 1
    if depth > DEPTH_MAX:
        name = SCOPE.get().frame.spec.name
        reason = f"flows call each other {DEPTH_MAX} deep, and flow {name} may not go on; end the circle with an `if`"
        raise FlowStepError(id, reason)


class OfDocument(Signature):
    """The signature of a flow that another flow starts: a document gives it variables as any start does, and none that
    are fixed."""

    def __init__(self, own: Signature) -> None:
        self.__dict__.update(own.__dict__)
        self._own = own
        self.takes_input = True

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """See `Signature`."""
        before = GIVER.set(Giver(is_free=False))
        try:
            return self._own.encode(args, kwargs)
        finally:
            GIVER.reset(before)

    def decode(self, data: Stored) -> tuple[list[Any], dict[str, Any]]:
        """See `Signature`."""
        return self._own.decode(data)


class FlowTarget:
    """Another flow, by its name: the version that is current when it is called."""

    has_own_scope = False

    def __init__(self, id: str, use: str, **options: Any) -> None:
        self._id, self._use, self._options = id, use, options

    async def run(self, execution: Execution, scope: Scope, given: Any) -> Any:
        """See `Target`."""
        spec = workflow_meant(execution, self._id, self._use)
        takes_input = getattr(spec.signature, "takes_input", False)
        target = WorkflowTarget(self._id, spec, takes_input=takes_input, **self._options)
        return await target.run(execution, scope, given)


def workflow_meant(execution: Execution, call: str, name: str) -> WorkflowSpec:
    """The workflow of a call that names no version: in a replay the version that it meant the first time, else the
    current one, by the registry of the engine, which has the flows of the library in its store too.

    Raises:
        FlowStepError: this process does not have it.
    """
    place = SCOPE.get()
    first = execution.ahead.children.get((place.frame.number, place.peek(call)), BY_NAME)
    for version in dict.fromkeys((first, BY_NAME)):
        with suppress(WorkflowNotFoundError):
            return execution.resolve(name, version)
    advice = did_you_mean(name, {each.name for each in REGISTRY.workflows()})
    raise FlowStepError(call, f"no flow or workflow is called {name!r} here; {advice}")


async def detached_result(
    execution: Execution, spec: WorkflowSpec, run_id: str, *, undo: StepSpec | None, name: str
) -> Any:
    """The result, as plain data, of a run that this one has started; `undo` takes it back if the saga around fails.

    If this is cancelled, the run is asked to stop. It may have done its work all the same: with an `undo` its end is
    waited for, as that of a step is.
    """
    saga = None if undo is None else find_saga(f"step {name}")
    if undo is None or saga is None:
        try:
            return await _end_of(execution, spec, run_id)
        except asyncio.CancelledError:
            cancel_detached(execution, run_id)
            raise
    end = asyncio.ensure_future(_end_of(execution, spec, run_id))
    booking = saga.book(name, undo)
    booking.follow(end, SCOPE.get().frame)
    try:
        return await asyncio.shield(end)
    except asyncio.CancelledError:
        cancel_detached(execution, run_id)
        if booking.holder is not None:
            booking.give_up()
        else:
            end.cancel()
        raise


async def _end_of(execution: Execution, spec: WorkflowSpec, run_id: str) -> Any:
    ended = await end_of(execution, run_id, started=spec.name)
    stored = result_of(ended, spec.registered)
    return await read_or_park(execution, lambda: plain_of(execution.unpack_foreign(stored), f"result of {run_id}"))


async def tried(id: str, retry: Retry | None, begin: Callable[[], Awaitable[Any]]) -> Any:
    """The result of something that is not a step, tried again as a policy says: the delays are durable timers."""
    attempt = 1
    while True:
        try:
            return await begin()
        except Exception as error:
            is_worth_it = retry is not None and (retry.when is None or retry.when(error))
            if retry is None or not is_worth_it or is_last(retry, attempt):
                raise
            pause = SCOPE.get().named(f"{id}.{attempt}")
            before = SCOPE.set(pause)
            try:
                await asyncio.sleep(delay_seconds(retry, attempt, pause.random().random() * 2 - 1))
            finally:
                SCOPE.reset(before)
        attempt += 1


class BuiltInTarget:
    """A built-in with an effect: what it does goes through steps."""

    has_own_scope = False

    def __init__(
        self,
        id: str,
        flow: Document,
        built_in: BuiltIn,
        options: StepOptions,
        *,
        kind: StepKind | None,
        later: Any,
        undo: UndoTarget | None,
        names: References = (),
    ) -> None:
        self._names = names
        self._id, self._flow, self._built_in = id, flow, built_in
        self._options, self._kind, self._undo = options, kind, undo
        self._later = later

    async def run(self, execution: Execution, scope: Scope, given: Any) -> Any:
        """See `Target`."""
        options = self._options
        if options.retry is None and execution.retry is None and self._kind is None:
            options = replace(options, retry=TRANSPORT_RETRY)
        if self._undo is not None:
            options = replace(options, undo=self._undo.spec(scope))
        grants = grants_in(self._names, scope) if self._names else ()
        call = Call(self._id, self._flow, scope, options, kind=self._kind, later=self._later, secrets=grants)
        return await self._built_in.run(call, arguments_for(self._built_in, self._id, given))


class RemoteTarget:
    """A remote step: a task in a queue, which a program in any language claims."""

    has_own_scope = False

    def __init__(self, step: RemoteStep[Any, Any]) -> None:
        self._step = step

    async def run(self, execution: Execution, scope: Scope, given: Any) -> Any:
        """See `Target`: tried again as its `retry` says, each time as another task."""
        return await self._step(given)


class RoutedTarget:
    """The targets that the settings of this environment put in the place of a name: the first route counts that fits
    the arguments of the step."""

    def __init__(self, choices: list[tuple[Route, Target]]) -> None:
        self.choices = choices
        self.has_own_scope = choices[0][1].has_own_scope

    async def run(self, execution: Execution, scope: Scope, given: Any) -> Any:
        """See `Target`."""
        route, target = next(each for each in self.choices if each[0].fits(given))
        return await target.run(execution, scope, route.add_to(given))


class ControlTarget:
    """A built-in that waits, decides, or runs others: workflow code, with a timeout around it."""

    has_own_scope = True

    def __init__(
        self, id: str, flow: Document, built_in: BuiltIn, *, retry: Retry | None, seconds: float | None, later: Any
    ) -> None:
        self._id, self._flow, self._built_in = id, flow, built_in
        self._retry, self._seconds, self._later = retry, seconds, later

    async def run(self, execution: Execution, scope: Scope, given: Any) -> Any:
        """See `Target`."""
        call = Call(self._id, self._flow, scope, StepOptions(), later=self._later)
        arguments = arguments_for(self._built_in, self._id, given)
        return await tried(self._id, self._retry, lambda: self._run(call, arguments))

    async def _run(self, call: Call, arguments: Any) -> Any:
        if self._seconds is None:
            return await self._built_in.run(call, arguments)
        async with asyncio.timeout(self._seconds):
            return await self._built_in.run(call, arguments)


def arguments_for(built_in: BuiltIn, id: str, given: Any) -> Any:
    """The arguments of a built-in of what a document gives it.

    Raises:
        FlowStepError: they do not fit.
    """
    if getattr(built_in, "takes_anything", False):
        return given
    try:
        return msgspec.convert(given, built_in.arguments)
    except msgspec.ValidationError as error:
        raise FlowStepError(id, f"`with` does not fit {built_in.name}: {error}") from None


class UndoTarget:
    """The call that takes a step back when the flow fails after it."""

    def __init__(self, id: str, use: str, render: Render | None, *, names: References = ()) -> None:
        self._name = f"{id}.undo"
        self._names = names
        self._use, self._render = use, render
        self._step = REGISTRY.find_step(use)

    @classmethod
    def of_step(cls, undo: StepSpec) -> StepSpec:
        """The undo that a registered step has by itself, for a flow: called with plain data."""
        return replace(undo, signature=_without_result(PlainArguments(undo.signature, undo.name)))

    def spec(self, scope: Scope, plain: Callable[[Any], Any] | None = None) -> StepSpec:
        """The step that a roll-back calls; `plain` makes plain data of the result of what is undone."""

        grants = grants_in(self._names, scope) if self._names else []

        def render(result: Any) -> Any:
            assert self._render is not None
            result = plain(result) if plain else result
            if grants:
                check_data(result, "result")
            return self._render({**scope, "result": result})

        if self._step is not None:
            own = as_undo(self._step)
            if grants:
                own = replace(own, fn=granting(own.fn, grants, to=self._use, is_async=own.is_async))
            options = own.options if own.options.retry else replace(own.options, retry=UNDO_RETRY)
            arguments = _without_result(RenderedArguments(self._step.signature, self._name, render))
            return replace(own, name=self._name, signature=arguments, options=options)
        built_in = find_built_in(self._use)
        assert built_in is not None

        async def undo(given: Any) -> None:
            await built_in.run(plain_call(self._name, {}, grants), arguments_for(built_in, self._name, given))

        signature = _without_result(_Undone(undo, self._name, render))
        options = StepOptions(retry=UNDO_RETRY, parks=True)
        return StepSpec(self._name, undo, signature, True, options)


class _Undone(Signature):
    """The arguments of a built-in that undoes: one value, made of the result of the step when it is undone."""

    def __init__(self, fn: Any, name: str, render: Callable[[Any], Any]) -> None:
        super().__init__(fn, name)
        self._render = render

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """See `Signature`."""
        return b"[" + codec_for(Any).encode(self._render(args[0]), f"what {self._name} is given") + b"]"


def _without_result(signature: Signature) -> Signature:
    signature.result = NO_RESULT
    return signature
