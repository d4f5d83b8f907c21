"""`@outlive.workflow`: an async function that survives its process."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import CoroutineType
from typing import Any, Generic, ParamSpec, TypeAlias, TypedDict, TypeVar, TypeVarTuple, Unpack, cast, overload

import msgspec

from outlive._kernel.define.declaration import Declaration, declarations
from outlive._kernel.define.registry import REGISTRY, check_function
from outlive._kernel.define.resources import refuse_uses
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.form import FormType, form_type
from outlive._kernel.journal.value import ValueCodec, codec_for_message
from outlive._kernel.model import Retry, given
from outlive._kernel.model.policy import check_retry
from outlive._kernel.model.queue import Queue, check_queue
from outlive._kernel.model.trigger import EventTrigger, TriggerSet, is_pattern
from outlive._kernel.replay.ask import child_result, current_execution, start_child
from outlive._kernel.replay.command import WorkflowSpec
from outlive.errors import ArgumentTypeError, InvalidArgumentError

SCHEDULES = "give what outlive.cron or outlive.every makes, for example schedule=outlive.every(minutes=15)"
P = ParamSpec("P")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class Workflow(Generic[P, R]):
    """A workflow; start it with `engine.start(...)`, or call it in another workflow with `await`."""

    def __init__(self, spec: WorkflowSpec, signals: Mapping[str, Any]) -> None:
        # Without the attributes of the function: one of them may be called as one of ours.
        functools.update_wrapper(self, spec.fn, updated=())
        self.spec = spec
        self.signals: dict[str, ValueCodec] = {name: codec_for_message(kind) for name, kind in signals.items()}
        self._signal_kinds = dict(signals)

    def _register(self, forms: Mapping[str, Any], schedule: object = None, on_event: object = None) -> None:
        """Let this process know it by its name, with the types of its signals and of the forms of its approvals, and
        when it starts by itself."""
        where = f"workflow {self.spec.name}"
        schedules = declarations(where, self.spec, "schedule", schedule, wanted=SCHEDULES)
        triggers = _triggers(where, self.spec, on_event)
        REGISTRY.add_workflow(self.spec)
        if schedules:
            REGISTRY.declare("schedule", self.spec, schedules)
        if triggers:
            REGISTRY.add_triggers(self.spec, triggers)
        SIGNALS[self.spec.name, self.spec.version] = self.signals
        SIGNAL_KINDS[self.spec.name, self.spec.version] = self._signal_kinds
        FORMS[self.spec.name, self.spec.version] = {name: form_type(form) for name, form in forms.items()}

    @property
    def name(self) -> str:
        """The name that journals know it by."""
        return self.spec.name

    @property
    def version(self) -> int:
        """Pinned when a run starts."""
        return self.spec.version

    @property
    def fn(self) -> Callable[P, Coroutine[Any, Any, R]]:
        """The plain function."""
        fn: Callable[P, Coroutine[Any, Any, R]] = self.spec.fn
        return fn

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[object, None, R]:
        """In a run: a child run in the same tree. Outside: the plain function."""
        execution = current_execution()
        if execution is None:
            return self.fn(*args, **kwargs)

        async def child() -> R:
            result: R = await child_result(execution, start_child(execution, self.spec, args, kwargs))
            return result

        return child()

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R]:
        """The workflow with its arguments, for `engine.start(workflow.bind(key=value), id=...)`."""
        self.spec.signature.encode(args, kwargs)
        return Bound(self, args, kwargs)

    def _check_startable(self) -> None:
        """A machine looks here whether its states fit together."""

    def __repr__(self) -> str:
        return f"<workflow {self.spec.name}@{self.spec.version}>"


class Bound(msgspec.Struct, Generic[R], eq=False):
    """A workflow, or a step as a run of its own, and the arguments it will be started with."""

    workflow: Workflow[..., R]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class HasRuns(Generic[P, R]):
    """Something that is not a workflow, of which runs can be started all the same: a step."""

    @property
    def as_run(self) -> Workflow[P, R]:
        """The workflow that is started."""
        raise NotImplementedError


Startable: TypeAlias = Callable[[*Ts], Coroutine[object, None, R]] | Bound[R]
"""A workflow that takes these arguments, or one that has its arguments from `bind`.

Written as something that can be called, because type checkers compare positional arguments with a callable only; what
is not a workflow is refused by `bound`.
"""


def refuse_unknown(workflow: object, options: Mapping[str, object]) -> None:
    """Say where arguments of a workflow go that were given to `engine.start` by name.

    Raises:
        ArgumentTypeError: there are some.
    """
    for option, value in options.items():
        name = workflow.name if isinstance(workflow, Workflow) else "workflow"
        wanted = (
            f"start has no such option; give arguments of the workflow by position, or by name with bind: "
            f"engine.start({name}.bind({option}={value!r}), id=...)"
        )
        raise ArgumentTypeError("engine.start", option, value, wanted)


def bound(workflow: Startable[*Ts, R], args: tuple[Any, ...]) -> Bound[R]:
    """The workflow that a caller wants to start, with its arguments.

    Raises:
        TypeError: it is not a workflow, or its arguments are given twice.
        MachineError: it is a machine whose states do not fit together.
    """
    if isinstance(workflow, Workflow):
        workflow._check_startable()
        return Bound(workflow, args, {})
    called = cast("object", workflow)
    if isinstance(called, HasRuns):
        return Bound(called.as_run, args, {})
    if isinstance(called, CoroutineType):
        called.close()
        wanted = "it was called already; give the workflow and then its arguments, for example start(order, 7)"
        raise ArgumentTypeError("start", "workflow", workflow, wanted)
    if not isinstance(workflow, Bound):
        wanted = "this is not a workflow; give a function decorated with @outlive.workflow or @outlive.step"
        raise ArgumentTypeError("start", "workflow", workflow, wanted)
    if args:
        wanted = "it has its arguments from bind(...); give all of them there"
        raise ArgumentTypeError("start", "workflow", workflow.workflow, wanted)
    workflow.workflow._check_startable()
    return workflow


class WorkflowOptions(TypedDict, total=False):
    """The options that functions and machines have in common. See `workflow`."""

    version: int
    timeout: given.Span | None
    signals: Mapping[str, Any] | None
    approvals: Mapping[str, Any] | None
    raises: tuple[type[BaseException], ...]
    resumable: bool
    strict_arguments: bool
    retry: Retry | None
    schedule: Declaration | Sequence[Declaration] | None
    on_event: str | Sequence[str] | None
    queue: Queue | str | None


@overload
def workflow(fn: Callable[P, Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...
@overload
def workflow(
    *, name: str | None = None, **options: Unpack[WorkflowOptions]
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Workflow[P, R]]: ...


def workflow(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    version: int = 1,
    timeout: given.Span | None = None,
    signals: Mapping[str, Any] | None = None,
    approvals: Mapping[str, Any] | None = None,
    raises: tuple[type[BaseException], ...] = (),
    resumable: bool = True,
    strict_arguments: bool = False,
    retry: Retry | None = None,
    schedule: Declaration | Sequence[Declaration] | None = None,
    on_event: str | Sequence[str] | None = None,
    queue: Queue | str | None = None,
) -> Any:
    """Make an async function a workflow.

    Args:
        name: what journals call it; the function's name unless given.
        version: pinned by each run when it starts; keep the old function registered while runs of it are open.
        timeout: seconds that a run may take as a whole.
        signals: types of signals by name, so that a payload that does not fit is refused when it is sent.
        approvals: types of the forms of approvals by name, so that a form is checked by its own type when it is sent.
        raises: exception classes that reach a parent run as themselves.
        resumable: whether a run goes on by itself when its worker was lost; if not it is parked, and `engine.resume`
            lets it go on. It counts for the run that was started, whatever children it has.
        strict_arguments: whether a run is parked when the code calls a step or a child with other arguments than the
            journal has. If not, the difference is logged and counted, and what the journal has counts.
        retry: for its steps that have no `retry` of their own.
        schedule: when it starts by itself, by `outlive.cron` or `outlive.every`; several need names of their own.
        on_event: the type of the events that start it (`engine.events.send`), or several; "order.*" stands for all that
            begin with "order.". The data of the event is its one argument.
        queue: where runs that are started wait for their turn; a child run is part of its parent, and does not wait.
    """

    def define(fn: Callable[..., Any]) -> Workflow[..., Any]:
        fn = fn.__func__ if isinstance(fn, staticmethod) else fn
        own_name = check_function("workflow", fn, name)
        where = f"workflow {own_name}"
        if not inspect.iscoroutinefunction(fn):
            wanted = f"a workflow must be an async function; use `async def {fn.__name__}`"
            raise ArgumentTypeError(f"@outlive.workflow {own_name}", "fn", fn, wanted)
        refuse_uses(where, fn)
        spec = WorkflowSpec(
            name=own_name,
            version=given.whole(where, "version", version),
            fn=fn,
            signature=Signature(fn, own_name),
            timeout_seconds=given.some_seconds(where, "timeout", timeout),
            registered=given.exceptions(where, "raises", raises),
            resumable=given.flag(where, "resumable", resumable),
            strict_arguments=given.flag(where, "strict_arguments", strict_arguments),
            retry=check_retry(where, retry),
            queue=check_queue(where, queue),
        )
        defined: Workflow[..., Any] = Workflow(spec, given.kinds(where, "signals", signals))
        defined._register(given.kinds(where, "approvals", approvals), schedule, on_event)
        return defined

    return define if fn is None else define(fn)


def _triggers(where: str, spec: WorkflowSpec, given_: object) -> TriggerSet:
    """The triggers of a workflow, checked against what it takes."""
    if given_ is None:
        return TriggerSet()
    types = given.texts(where, "on_event", [given_] if isinstance(given_, str) else given_, like="order.created")
    if not types or not all(map(is_pattern, types)):
        wanted = "name at least one type of events; `*` stands at the end, for example on_event='order.*'"
        raise InvalidArgumentError(where, "on_event", given_, wanted)
    various = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [each for each in spec.signature.parameters if each.default is each.empty and each.kind not in various]
    if len(needed) > 1 or any(each.kind is each.KEYWORD_ONLY for each in needed):
        wanted = f"{spec.name} takes more than one argument, and an event gives it one: its data"
        raise InvalidArgumentError(where, "on_event", given_, wanted)
    return TriggerSet(events=tuple(EventTrigger(event=each) for each in types))


SIGNALS: dict[tuple[str, int], dict[str, ValueCodec]] = {}
"""Declared signal types of the workflows of this process, for senders who know only a run's id."""

SIGNAL_KINDS: dict[tuple[str, int], dict[str, Any]] = {}
"""The annotations of the signals of a workflow, for their schemas."""

FORMS: dict[tuple[str, int], dict[str, FormType]] = {}
"""Declared form types of approvals, in the same way."""
