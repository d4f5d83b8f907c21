"""`@outlive.step`: a function with effects, journaled when it has ended.

Inside a run, calling a step asks for it and waits for its journaled outcome. Anywhere else it is the plain function, so
it can be tested without an engine.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import msgspec

from outlive._kernel.define.method import lacks_object, on_object, on_resource, with_object
from outlive._kernel.define.plain import call_booked, call_plainly, plain_saga
from outlive._kernel.define.registry import REGISTRY, check_function, is_method
from outlive._kernel.define.resources import Resource, uses_of, wanted_in
from outlive._kernel.define.step_run import run_of
from outlive._kernel.define.workflow import Bound, HasRuns, Workflow
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Retry, given
from outlive._kernel.model.policy import check_retry
from outlive._kernel.replay.ask import current_execution, run_step
from outlive._kernel.replay.command import StepKind, StepOptions, StepSpec
from outlive.errors import ArgumentTypeError, DefinitionError, WrongArgumentsError

if TYPE_CHECKING:
    from outlive._kernel.model.breaker import Breaker
    from outlive._kernel.model.guard import Cost, Guard
    from outlive._kernel.model.limit import RateLimit

P = ParamSpec("P")
Q = ParamSpec("Q")
O = TypeVar("O")  # noqa: E741
R = TypeVar("R")

UNDO_RETRY = Retry(attempts=20, first=1, factor=2, cap=60)
"""How a plain function that undoes a step is tried: for about a quarter of an hour."""


class Step(HasRuns[P, R]):
    """A step; call it in a workflow with `await`."""

    def __init__(self, spec: StepSpec, options: StepOptions) -> None:
        # Without the attributes of the function: one of them may be called as one of ours.
        functools.update_wrapper(self, spec.fn, updated=())
        self.spec = spec
        self.call_options = options
        """The options of its calls: the options of the definition, or a copy that `options` has changed."""
        self._lacks_object = lacks_object(spec)

    @property
    def name(self) -> str:
        """The name that journals know it by."""
        return self.spec.name

    @property
    def fn(self) -> Callable[..., Any]:
        """The plain function. That of a step with `transaction=True` takes the transaction first."""
        fn: Callable[..., Any] = self.spec.fn
        return fn

    # Without `Any`, of which type checkers make that `asyncio.gather` of two steps gives anything.
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[object, None, R]:
        """In a run: ask for the step. Outside: call the plain function (which, if it is sync, returns its value)."""
        execution = current_execution()
        if execution is None:
            if self.call_options.undo is not None and (saga := plain_saga(self.name)) is not None:
                return call_booked(saga, self.spec, self.call_options.undo, args, kwargs)  # type: ignore[no-any-return]
            if self.spec.resources is not None:
                return call_plainly(self.spec, args, kwargs)  # type: ignore[no-any-return]
            return self.spec.fn(*args, **kwargs)  # type: ignore[no-any-return]
        if self._lacks_object:
            if not args:
                raise WrongArgumentsError(self.name, "(self, ...)", "missing the object: call it on one")
            bound: Step[..., R] = cast("Any", self).__get__(args[0])
            return bound(*args[1:], **kwargs)
        return run_step(execution, self.spec, self.call_options, args, kwargs)

    def options(
        self,
        *,
        retry: Retry | None = None,
        timeout: given.Span | None = None,
        heartbeat_timeout: given.Span | None = None,
        undo: Step[[R], Any] | None = None,
        breaker: Breaker | None = None,
        limit: RateLimit | None = None,
        cost: Cost | None = None,
    ) -> Step[P, R]:
        """A copy of the step with other options, for one call. An `undo` must be a step here: a plain function has no
        name."""
        where = f"step {self.name}"
        changed = msgspec.structs.replace(
            self.call_options,
            guard=_guard(self.name, breaker, limit, cost, own=self.call_options.guard),
            retry=check_retry(where, retry) or self.call_options.retry,
            timeout_seconds=given.some_seconds(where, "timeout", timeout) or self.call_options.timeout_seconds,
            heartbeat_seconds=given.some_seconds(where, "heartbeat_timeout", heartbeat_timeout)
            or self.call_options.heartbeat_seconds,
            undo=self.call_options.undo if undo is None else _undo_of(self.spec.name, undo, may_define=False),
        )
        return Step(self.spec, changed)

    @overload
    def __get__(self, instance: None, owner: Any = None, /) -> Self: ...
    @overload
    def __get__(self: Step[Concatenate[O, Q], R], instance: O, owner: Any = None, /) -> Step[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any:
        """A step of a class: a method has its object now."""
        if instance is None or not self._lacks_object:
            return self
        return Step(*with_object(self.spec, self.call_options, functools.partial(on_object, instance)))

    def of(self: Step[Concatenate[O, Q], R], resource: Resource[O], *, name: str | None = None) -> Step[Q, R]:
        """For a step that is a method, taken from its class: the step that is called on a resource.

            charge = Gateway.charge.of(gateway)

        Args:
            resource: makes the object, in each worker that runs the step.
            name: what journals call it; the names of the resource and of the method unless given.
        """
        where = f"step {self.name}"
        if not self._lacks_object:
            raise DefinitionError(f"{where} is not a method: let a parameter take the resource, with outlive.use(...)")
        like = "a function below @outlive.resource"
        wanted: Resource[Any] = given.instance(where, "resource", resource, Resource, like=like)
        own_name = given.label(where, f"{wanted.name}.{self.spec.fn.__name__}" if name is None else name)
        spec, options = with_object(self.spec, self.call_options, functools.partial(on_resource, wanted))
        spec = msgspec.structs.replace(spec, name=own_name)
        REGISTRY.add_step(spec)
        return Step(spec, options)

    def bind(self: Step[P, R], *args: P.args, **kwargs: P.kwargs) -> Bound[R]:
        """The step with its arguments, for `engine.start(step.bind(key=value), id=...)`."""
        self.spec.signature.encode(args, kwargs)
        return Bound(self.as_run, args, kwargs)

    @property
    def as_run(self) -> Workflow[P, R]:
        """The workflow that calls this step once, which `engine.start` starts.

        Raises:
            DefinitionError: a worker could not find the step by its name alone.
        """
        where = f"step {self.name}"
        if self.spec.is_method:
            raise DefinitionError(f"{where} is a method, and a run of it has no object; make it a step of a resource")
        if self.call_options is not self.spec.options:
            raise DefinitionError(
                f"{where}: options(...) are for one call in a workflow, and a run of a step has those of its "
                f"definition; start the step itself, or a workflow that calls it like this"
            )
        if REGISTRY.find_workflow(self.name) is not None:
            raise DefinitionError(f"{where}: a workflow has this name too; give the step another one with name=")
        return Workflow(run_of(self.spec), {})

    def __repr__(self) -> str:
        return f"<step {self.spec.name}>"


class _Options(TypedDict, total=False):
    """The options that every kind of step takes, for type checkers."""

    name: str | None
    by_name: bool
    retry: Retry | None
    timeout: given.Span | None
    heartbeat_timeout: given.Span | None
    raises: tuple[type[BaseException], ...]
    breaker: Breaker | None
    limit: RateLimit | None
    cost: Cost | None


@overload
def step(fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
@overload
def step(fn: Callable[P, R], /) -> Step[P, R]: ...
@overload
def step(
    *,
    undo: None = None,
    once: bool = False,
    process: bool = False,
    transaction: Literal[False] = False,
    **options: Unpack[_Options],
) -> _StepDecorator: ...
@overload
def step(
    *,
    undo: Callable[[R], Any],
    once: bool = False,
    process: bool = False,
    transaction: Literal[False] = False,
    **options: Unpack[_Options],
) -> _UndoableStepDecorator[R]: ...
@overload
def step(
    *, undo: None = None, transaction: Literal[True], **options: Unpack[_Options]
) -> _TransactionStepDecorator: ...
@overload
def step(
    *, undo: Callable[[R], Any], transaction: Literal[True], **options: Unpack[_Options]
) -> _UndoableTransactionStepDecorator[R]: ...


def step(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    by_name: bool = False,
    retry: Retry | None = None,
    timeout: given.Span | None = None,
    heartbeat_timeout: given.Span | None = None,
    raises: tuple[type[BaseException], ...] = (),
    undo: Step[..., Any] | Callable[[Any], Any] | None = None,
    once: bool = False,
    process: bool = False,
    transaction: bool = False,
    breaker: Breaker | None = None,
    limit: RateLimit | None = None,
    cost: Cost | None = None,
) -> Any:
    """Make a function a step.

    Args:
        name: what journals call it; the function's name unless given. Renaming it breaks runs under way.
        by_name: whether programs without its code may start a run of it, as they start workflows: by its name, over
            HTTP and from the command line. A program with the code may start a run of any step.
        retry: when failed attempts are tried again; unless given as the workflow says (`@outlive.workflow(retry=...)`),
            else as the engine says, else not at all.
        timeout: seconds that one attempt may take.
        heartbeat_timeout: an attempt fails when it has not called `current_step().heartbeat()` for so many seconds
            and has emitted nothing.
        raises: exception classes that reach the workflow as themselves (those in `retry.on` do so too).
        undo: takes the effect back if the saga around a call fails: a step, or a plain function, which then becomes
            the step `<name>.undo`; it is called with the result of the step.
        once: call it at most once; after a crash the workflow gets `StepInterruptedError`, not a second call.
        process: run it in a process of its own, which is killed when the step is cancelled or takes too long.
        transaction: run it in a transaction of the store's database, its first argument, that commits with the journal.
        breaker: stops calling it while it fails again and again.
        limit: how often it may be called.
        cost: of one call, for `limit`: a number, or a plain function of the arguments; 1 unless given.
    """

    def define(fn: Callable[..., Any]) -> Step[..., Any]:
        fn = fn.__func__ if isinstance(fn, staticmethod) else fn
        own_name = check_function("step", fn, name)
        where = f"step {own_name}"
        kind = _kind_of(own_name, fn, once=once, process=process, transaction=transaction)
        uses, has_object = uses_of(where, fn), is_method(fn)
        if process and (uses or has_object):
            what = "it is a method" if has_object else f"its parameter {next(iter(uses))!r} takes a resource"
            raise DefinitionError(
                f"{where}: {what}, and process=True runs it in a process of its own, which has none of that; leave "
                f"process=True out, or make what it needs inside a function"
            )
        policy = check_retry(where, retry)
        classes = given.exceptions(where, "raises", raises)
        seconds = given.some_seconds(where, "timeout", timeout)
        silent = given.some_seconds(where, "heartbeat_timeout", heartbeat_timeout)
        undoing = None if undo is None else _undo_of(own_name, undo, may_define=True)
        if undoing is not None and lacks_object(undoing) and not has_object:
            raise DefinitionError(
                f"{where}: its undo {undoing.name} is a method, and has no object here; take it from an object, or "
                f"make it a step on a resource with .of(...)"
            )
        guard = _guard(own_name, breaker, limit, cost)
        options = StepOptions(
            retry=policy, timeout_seconds=seconds, heartbeat_seconds=silent, undo=undoing, guard=guard
        )
        spec = StepSpec(
            name=own_name,
            fn=fn,
            signature=Signature(fn, own_name, skip=has_object + (kind is StepKind.TRANSACTION), without=uses),
            is_async=inspect.iscoroutinefunction(fn),
            options=options,
            registered=(*classes, *(policy.on if policy else ())),
            kind=kind,
            resources=wanted_in(uses),
            is_method=has_object,
            by_name=given.flag(where, "by_name", by_name),
        )
        if not has_object:
            REGISTRY.add_step(spec)
        return Step(spec, options)

    return define if fn is None else define(fn)


def _guard(
    name: str, breaker: Breaker | None, limit: RateLimit | None, cost: Cost | None, *, own: Guard | None = None
) -> Guard | None:
    """The guard of the step; `own` is the guard that it has already."""
    if breaker is None and limit is None and cost is None:
        return own
    from outlive._kernel.model.guard import guard_of  # Most programs need none of it.

    if own is not None:
        breaker = breaker or own.breaker
        cost = own.cost if cost is None and own.limit is not None else cost
        limit = limit or own.limit
    return guard_of(f"step {name}", breaker, limit, cost)


class UnstorableResultError(Exception):
    """An undoable step has had its effect, and what it returned has no stored form.

    For the journal it has failed, and its saga counts on a failed step having left nothing behind. So its undo is
    called before the failure is written down, with the result while that is at hand: `_runtime.steps.unstorable`.
    """

    def __init__(self, cause: Exception, given: tuple[Any, ...] | None) -> None:
        super().__init__(str(cause))
        self.cause = cause
        """Why not: as what the step fails."""
        self.given = given
        """The arguments for the undo; None if they are not at hand."""


class _NoResult:
    """A codec for the result of an undo, which is dropped: it need not be a value that can be stored."""

    def encode(self, value: Any, what: str) -> bytes:
        """Nothing."""
        return b"null"

    def decode(self, data: Stored, what: str) -> Any:
        """Nothing."""
        return None


NO_RESULT = _NoResult()
"""The codec for the result of an undo."""


def as_undo(spec: StepSpec, options: StepOptions | None = None) -> StepSpec:
    """A step as what a roll-back calls: it never fails, it parks its run."""
    signature = copy.copy(spec.signature)
    signature.result = NO_RESULT
    options = msgspec.structs.replace(options or spec.options, parks=True, undo=None)
    return msgspec.structs.replace(spec, signature=signature, options=options)


def _undo_of(name: str, undo: Step[..., Any] | Callable[[Any], Any], *, may_define: bool) -> StepSpec:
    """The step that undoes the step of this name; a plain function may become one."""
    if not isinstance(undo, Step):
        if not may_define:
            wanted = "options(...) needs a step here: give a function that is decorated with @outlive.step"
            raise ArgumentTypeError(f"step {name}", "undo", undo, wanted)
        given.function(f"step {name}", "undo", undo, like="release")
        undo = step(name=f"{name}.undo", retry=UNDO_RETRY)(undo)
    spec = as_undo(undo.spec, undo.call_options)
    if not spec.signature.takes_one:
        raise DefinitionError(
            f"step {name}: its undo {spec.name} must take one argument, the result of {name}: write "
            f"`def {spec.fn.__name__}(result)`"
        )
    return spec


class _StepDecorator(Protocol):
    """The type of `@outlive.step(...)` with options, for type checkers."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Step[P, R]: ...


class _UndoableStepDecorator(Protocol[R]):
    """The type of `@outlive.step(undo=...)`, for type checkers: the step returns what its undo takes."""

    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Step[P, R]: ...


class _TransactionStepDecorator(Protocol):
    """The type of `@outlive.step(transaction=True)`, for type checkers: a workflow gives all arguments but the
    first."""

    @overload
    def __call__(self, fn: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Any, P], R], /) -> Step[P, R]: ...


class _UndoableTransactionStepDecorator(Protocol[R]):
    """The type of `@outlive.step(undo=..., transaction=True)`, for type checkers."""

    @overload
    def __call__(self, fn: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Any, P], R], /) -> Step[P, R]: ...


def _kind_of(name: str, fn: Callable[..., Any], *, once: bool, process: bool, transaction: bool) -> StepKind | None:
    wanted = {StepKind.ONCE: once, StepKind.PROCESS: process, StepKind.TRANSACTION: transaction}
    kinds = [kind for kind, is_wanted in wanted.items() if given.flag(f"step {name}", kind.value, is_wanted)]
    if len(kinds) > 1:
        both = " and ".join(f"{kind.value}=True" for kind in kinds)
        raise DefinitionError(f"step {name}: {both} exclude each other; choose one, or make it two steps")
    if process and inspect.iscoroutinefunction(fn):
        raise DefinitionError(
            f"step {name}: process=True is for plain functions, and this one is async; write `def` instead of "
            f"`async def`, or leave process=True out"
        )
    if transaction and not _takes_positional(fn, skip=is_method(fn)):
        raise DefinitionError(
            f"step {name}: transaction=True gives the transaction as the first argument, and this function takes "
            f"none by position; write `def {fn.__name__}(tx, ...)`"
        )
    return kinds[0] if kinds else None


def _takes_positional(fn: Callable[..., Any], *, skip: int) -> bool:
    kinds = [parameter.kind for parameter in inspect.signature(fn).parameters.values()][skip:]
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return bool(kinds) and kinds[0] in by_position
