"""`@outlive.workflow`: an async function that survives its process."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, TypeVarTuple, overload

from outlive._define.registry import REGISTRY, check_top_level
from outlive._define.step import check_name
from outlive._journal.arguments import Signature
from outlive._journal.form import FormType, form_type
from outlive._journal.value import ValueCodec, codec_for
from outlive._replay.ask import child_result, current_execution, start_child
from outlive._replay.command import WorkflowSpec
from outlive.errors import DefinitionError

P = ParamSpec("P")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")


class Workflow(Generic[P, R]):
    """A workflow; start it with `engine.start(...)`, or call it in another workflow with `await`."""

    def __init__(self, spec: WorkflowSpec, signals: Mapping[str, Any]) -> None:
        self.spec = spec
        self.signals: dict[str, ValueCodec] = {name: codec_for(annotation) for name, annotation in signals.items()}
        functools.update_wrapper(self, spec.fn)

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


class Bound(Generic[R]):
    """A workflow and the arguments it will be started with."""

    def __init__(self, workflow: Workflow[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.workflow = workflow
        self.args = args
        self.kwargs = kwargs


Startable: TypeAlias = Callable[[*Ts], Coroutine[object, None, R]] | Bound[R]
"""A workflow that takes these arguments, or one that has its arguments from `bind`.

Written as something that can be called, because type checkers compare positional arguments with a callable only; what
is no workflow is refused by `bound`.
"""


def bound(workflow: Startable[*Ts, R], args: tuple[Any, ...]) -> Bound[R]:
    """The workflow that a caller wants to start, with its arguments.

    Raises:
        TypeError: it is not a workflow, or its arguments are given twice.
        MachineError: it is a machine whose states do not fit together.
    """
    if isinstance(workflow, Workflow):
        workflow._check_startable()
        return Bound(workflow, args, {})
    if not isinstance(workflow, Bound):
        raise TypeError(f"{workflow!r} is not a workflow; start a function decorated with @outlive.workflow")
    if args:
        raise TypeError(f"{workflow.workflow!r} has its arguments from bind(...); give all of them there")
    workflow.workflow._check_startable()
    return workflow


@overload
def workflow(fn: Callable[P, Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...
@overload
def workflow(
    *,
    name: str | None = None,
    version: int = 1,
    timeout: float | None = None,
    signals: Mapping[str, Any] | None = None,
    approvals: Mapping[str, Any] | None = None,
    raises: tuple[type[BaseException], ...] = (),
    resumable: bool = True,
    strict_arguments: bool = False,
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Workflow[P, R]]: ...


def workflow(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    version: int = 1,
    timeout: float | None = None,
    signals: Mapping[str, Any] | None = None,
    approvals: Mapping[str, Any] | None = None,
    raises: tuple[type[BaseException], ...] = (),
    resumable: bool = True,
    strict_arguments: bool = False,
) -> Any:
    """Make an async function a workflow.

    Args:
        name: what journals call it; the function's name unless given.
        version: pinned by each run when it starts; keep the old function registered while runs of it are open.
        timeout: seconds that a run may take as a whole.
        signals: types of signals by name, so that a sender is told at once when a payload does not fit.
        approvals: types of the forms of approvals by name, so that a form is checked by its own type when it is sent.
        raises: exception classes that reach a parent run as themselves.
        resumable: whether a run goes on by itself when its worker was lost; if not it is parked, and `engine.resume`
            lets it go on. It counts for the run that was started, whatever children it has.
        strict_arguments: whether a run is parked when the code calls a step or a child with other arguments than the
            journal has. If not, the difference is logged and counted, and what the journal has counts.
    """

    def define(fn: Callable[..., Any]) -> Workflow[..., Any]:
        check_top_level("workflow", fn)
        own_name = check_name(name or fn.__name__)
        if not inspect.iscoroutinefunction(fn):
            raise DefinitionError(f"workflow {own_name} must be an async function: write `async def {own_name}`")
        if version < 1:
            raise DefinitionError(f"workflow {own_name}: version={version!r} must be a whole number from 1 on")
        if timeout is not None and timeout <= 0:
            raise DefinitionError(f"workflow {own_name}: timeout={timeout!r} must be more than 0 seconds")
        spec = WorkflowSpec(
            name=own_name,
            version=version,
            fn=fn,
            signature=Signature(fn, own_name),
            timeout_seconds=timeout,
            registered=raises,
            resumable=resumable,
            strict_arguments=strict_arguments,
        )
        defined: Workflow[..., Any] = Workflow(spec, signals or {})
        REGISTRY.add_workflow(defined.spec)
        SIGNALS[spec.name, spec.version] = defined.signals
        FORMS[spec.name, spec.version] = {name: form_type(form) for name, form in (approvals or {}).items()}
        return defined

    return define if fn is None else define(fn)


SIGNALS: dict[tuple[str, int], dict[str, ValueCodec]] = {}
"""Declared signal types of the workflows of this process, for senders who know only a run's id."""

FORMS: dict[tuple[str, int], dict[str, FormType]] = {}
"""Declared form types of approvals, in the same way."""
