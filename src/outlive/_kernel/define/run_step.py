"""`outlive.run_step`: any function as a step, where it is called and without a decorator.

A decorated step is found again by its name in a registry. This one need not be: the workflow code that calls it runs
again in every replay and makes the same closure, partial or bound method once more. Only its name has to be the same,
as the journal knows the call by it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar, TypeVarTuple, overload
from weakref import WeakKeyDictionary

from outlive._kernel.define.plain import call_plainly
from outlive._kernel.define.resources import WantedResources, call, uses_of, wanted_in
from outlive._kernel.define.step import Step
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.journal.arguments import Signature, plain_function
from outlive._kernel.model import Retry, given
from outlive._kernel.model.policy import check_retry
from outlive._kernel.replay import ask
from outlive._kernel.replay.command import StepOptions, StepSpec
from outlive.errors import ArgumentTypeError, InvalidArgumentError

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

_WHERE = "outlive.run_step"


@overload
async def run_step(
    fn: Callable[[*Ts], Coroutine[Any, Any, R]],
    /,
    *args: *Ts,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: given.Span | None = None,
    heartbeat_timeout: given.Span | None = None,
    raises: tuple[type[BaseException], ...] = (),
    shown: Callable[[], Mapping[str, Any]] | None = None,
) -> R: ...
@overload
async def run_step(
    fn: Callable[[*Ts], R],
    /,
    *args: *Ts,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: given.Span | None = None,
    heartbeat_timeout: given.Span | None = None,
    raises: tuple[type[BaseException], ...] = (),
    shown: Callable[[], Mapping[str, Any]] | None = None,
) -> R: ...
async def run_step(
    fn: Callable[..., Any],
    /,
    *args: object,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: given.Span | None = None,
    heartbeat_timeout: given.Span | None = None,
    raises: tuple[type[BaseException], ...] = (),
    shown: Callable[[], Mapping[str, Any]] | None = None,
) -> Any:
    """Call a function as a step: a closure, a method, a partial, a lambda, async or not (then on a thread).

    Its result is in the journal, typed by the annotation of the function, and a replay does not call it again. So it
    must not change anything that the workflow holds. Outside of a run this is a plain call.

    Args:
        fn: the function. Its own keyword arguments are given with `functools.partial`.
        name: what the journal calls it: its qualified name unless given. A lambda needs one.
        retry: when failed attempts are tried again; unless given as the workflow or the engine says.
        timeout: seconds that one attempt may take.
        heartbeat_timeout: an attempt fails when it has not called `current_step().heartbeat()` for so many seconds
            and has emitted nothing.
        raises: exception classes that reach the workflow as themselves (those in `retry.on` do so too).
        shown: gives the arguments that people see, by name, for a function that has them in a closure. It is called
            when they are recorded or looked at, and by no replay.
    """
    own_name = _name_of(fn, name)
    where = f"{_WHERE} {own_name}"
    policy, classes = check_retry(where, retry), given.exceptions(where, "raises", raises)
    options = StepOptions(
        retry=policy,
        timeout_seconds=given.some_seconds(where, "timeout", timeout),
        heartbeat_seconds=given.some_seconds(where, "heartbeat_timeout", heartbeat_timeout),
    )
    known = read_function(fn, own_name)
    spec = StepSpec(
        name=own_name,
        fn=fn,
        signature=known.signature,
        is_async=known.is_async,
        options=options,
        registered=(*classes, *(policy.on if policy else ())),
        resources=known.resources,
        shown=None if shown is None else given.function(where, "shown", shown, like="lambda: {'city': city}"),
    )
    execution = ask.current_execution()
    if execution is None:
        return await call(call_plainly, spec, args, {})
    return await ask.run_step(execution, spec, options, args, {})


def _name_of(fn: object, name: object) -> str:
    """The name of a function in the journal.

    Raises:
        InvalidArgumentError: it cannot be a step, or has no name.
    """
    if isinstance(fn, Step | Workflow):
        kind = "step" if isinstance(fn, Step) else "workflow"
        raise ArgumentTypeError(_WHERE, "fn", fn, f"it is a {kind} already; call it: await {fn.name}(...)")
    given.function(_WHERE, "fn", fn, like="fetch_rates")
    if name is not None:
        return given.label(_WHERE, name, like="rates")
    plain = plain_function(fn)
    own = str(getattr(plain, "__qualname__", type(fn).__qualname__)).replace("<locals>.", "")
    if "<lambda>" in own:
        wanted = "a lambda has no name that a journal can have; give one, for example name='rates'"
        raise InvalidArgumentError(_WHERE, "name", None, wanted)
    return given.label(_WHERE, own.removesuffix(".__call__"), like="rates")


class _Known(NamedTuple):
    """The facts about a function that `run_step` needs. They do not hold the function, so that a closure is forgotten
    with its run."""

    name: str
    """The name in its messages."""
    signature: Signature
    is_async: bool
    resources: WantedResources | None


_KNOWN: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()
"""The facts about plain functions: a loop that calls one should not read it every time."""


def read_function(fn: Any, name: str) -> _Known:
    """The facts about its function that a step of this name needs."""
    if not inspect.isfunction(fn):
        return _read(fn, name)
    known = _KNOWN.get(fn)
    if known is None or known.name != name:
        known = _KNOWN[fn] = _read(fn, name)
    return known


def _read(fn: Any, name: str) -> _Known:
    uses = uses_of(f"{_WHERE} {name}", fn)
    try:
        signature = Signature(fn, name, without=uses)
    except ValueError:  # Something built in that says nothing of itself.
        wanted = f"its arguments are not known; call it in a function, for example run_step(lambda: ..., name={name!r})"
        raise ArgumentTypeError(_WHERE, "fn", fn, wanted) from None
    is_async = inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(plain_function(fn))
    return _Known(name, signature, is_async, wanted_in(uses))
