"""How a machine asks for steps of its own, in a run and outside of one."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from outlive._define.machine.wire import Outcome, Pieces, reader
from outlive._define.plain import call_plainly, plain_saga
from outlive._define.resources import Wanted, count_taken
from outlive._define.step import NO_RESULT, UNDO_RETRY, Step, as_undo, check_retry
from outlive._define.unkept import UnkeptError
from outlive._journal.value import Stored, ValueCodec
from outlive._model import Retry, given
from outlive._model.guard import Guard
from outlive._model.policy import NO_RETRY
from outlive._replay.ask import current_execution, read_or_park, run_step
from outlive._replay.command import StepKind, StepOptions, StepSpec
from outlive._replay.frame import SCOPE
from outlive.errors import DefinitionError, OutliveError

T = TypeVar("T")
Function = Callable[..., Any]
Given = msgspec.Raw | bytes


# -- Steps of a machine ------------------------------------------------------------------------------------------------


def own_step(
    name: str,
    fn: Function,
    *,
    codecs: Sequence[ValueCodec],
    result: ValueCodec,
    finish: Callable[[list[Any], Any], Any] | None = None,
    retry: Retry | None = None,
    timeout: given.Span | None = None,
    undo: StepSpec | None = None,
    raises: tuple[type[BaseException], ...] = (),
    kind: StepKind | None = None,
    keeps_raw: bool = False,
    guard: Guard | None = None,
    wanted: Wanted | None = None,
) -> StepSpec:
    """A function of the user as a step of a machine.

    Args:
        codecs: of what it is given; a function that takes fewer arguments is given fewer.
        finish: makes the result of the step, from what the function was given and what it returned.
        wanted: the resources that it is given by keyword.
        keeps_raw: give `finish` also the first argument as it was stored, as the last of what was given.
    """
    check_function(name, fn)
    ends = finish or _as_it_is
    policy = NO_RETRY if retry is None else check_retry(name, retry)
    seconds = given.some_seconds(name, "timeout", timeout)
    classes = given.exceptions(name, "raises", raises)
    return StepSpec(
        name=name,
        fn=_called(name, fn, ends, len(codecs), extra=kind is StepKind.TRANSACTION, wanted=wanted),
        signature=Pieces(reader(name, codecs, keeps_raw=keeps_raw), result),
        is_async=inspect.iscoroutinefunction(fn),
        options=StepOptions(retry=policy, timeout_seconds=seconds, undo=undo, guard=_given(name, guard, len(codecs))),
        registered=(*classes, *(policy.on if retry else ())),
        kind=kind,
        resources=None if wanted is None else wanted.get,
    )


def check_function(name: str, fn: object) -> None:
    """Refuse what cannot be a handler, though it may look like one.

    Raises:
        DefinitionError: says what to give instead.
    """
    if isinstance(fn, Step):
        raise DefinitionError(
            f"{name}: {fn.name} is a step already; give its plain function, or call it in a `.workflow(...)` state"
        )
    # From Python 3.14 on `inspect` calls a partial a routine, as it is bound like a method in a class body.
    if isinstance(fn, functools.partial) or not inspect.isroutine(fn):
        raise DefinitionError(f"{name}: {fn!r} is no function; write `def` or `async def`")


def _given(name: str, guard: Guard | None, count: int) -> Guard | None:
    """The guard of a state, whose cost is a function of what its handler is given, or of the first part of that."""
    if guard is None or not callable(guard.cost):
        return guard
    cost, takes = guard.cost, count_taken(name, guard.cost, count)
    return replace(guard, cost=lambda *values: cost(*values[:takes]))


def _called(
    name: str,
    fn: Function,
    ends: Callable[[list[Any], Any], Any],
    given: int,
    *,
    extra: bool,
    wanted: Wanted | None,
) -> Function:
    """The function of the step; the transaction, if there is one, comes first."""
    takes = count_taken(name, fn, given + extra, wanted=wanted)

    async def call(*values: Any, **resources: Any) -> Any:
        return ends([*values[extra:]], await fn(*values[:takes], **resources))

    def call_sync(*values: Any, **resources: Any) -> Any:
        return ends([*values[extra:]], fn(*values[:takes], **resources))

    called: Function = call if inspect.iscoroutinefunction(fn) else call_sync
    called.__module__, called.__qualname__, called.__name__ = fn.__module__, fn.__qualname__, fn.__name__
    return called


def _as_it_is(values: list[Any], returned: Any) -> Any:
    return returned


def undo_step(
    name: str, undo: Step[..., Any] | Function, data: ValueCodec, *, wanted: Wanted | None = None
) -> StepSpec:
    """What undoes a state: called with the data as the state left it."""
    if isinstance(undo, Step):
        if not undo.spec.signature.takes_one:
            raise DefinitionError(f"{name}: its undo {undo.name} must take one argument, the data")
        spec = as_undo(undo)
        return msgspec.structs.replace(spec, signature=Pieces(undo.spec.signature.decode, NO_RESULT))
    spec = own_step(f"{name}.undo", undo, codecs=[data], result=NO_RESULT, retry=UNDO_RETRY, wanted=wanted)
    return msgspec.structs.replace(spec, options=msgspec.structs.replace(spec.options, parks=True))


def returned_states(fn: Function) -> list[enum.Enum] | None:
    """The states that a function says it returns: `-> Literal[S.A, S.B]`. None if it does not say."""
    try:
        hint = get_type_hints(fn).get("return")
    except Exception:  # A name that only type checkers know.
        return None
    if hint is None:
        return None
    found: list[enum.Enum] = []
    for part in get_args(hint) if get_origin(hint) not in (None, Literal, tuple) else (hint,):
        inner = get_args(part)[0] if get_origin(part) is tuple else part
        if get_origin(inner) is Literal:
            found += [each for each in get_args(inner) if each is not None]
        elif getattr(get_origin(inner) or inner, "__name__", "") not in ("More", "Pending", "NoneType"):
            return None
    return found


# -- Asking ------------------------------------------------------------------------------------------------------------


async def ask(spec: StepSpec, *pieces: Given) -> Any:
    """The result of a step; outside of a run it is called here and now."""
    execution = current_execution()
    if execution is not None:
        return await run_step(execution, spec, spec.options, pieces, {})
    undo = spec.options.undo
    saga = None if undo is None else plain_saga(spec.name)
    values, _ = spec.signature.decode(spec.signature.encode(pieces, {}))
    try:
        result = await call_plainly(spec, tuple(values), {})
    except UnkeptError as error:
        if saga is not None and undo is not None and error.given is not None:
            saga.book(spec.name, undo).complete(*error.given)
        raise error.cause from None
    if saga is not None and undo is not None:
        taken, _ = undo.signature.decode(undo.signature.encode((result,), {}))
        saga.book(spec.name, undo).complete(*taken)
    return result


async def readable(codec: ValueCodec, data: Stored, what: str) -> Any:
    """The value; a run whose data the code cannot read is parked."""
    execution = current_execution()
    if execution is None:
        return codec.decode(data, what)
    return await read_or_park(execution, lambda: codec.decode(data, what))


async def park(error: OutliveError) -> NoReturn:
    """Stop here: the code must be mended, and failing the run would lose it."""
    execution = current_execution()
    if execution is None:
        raise error
    execution.park(error, SCOPE.get().frame.number)
    await execution.loop.create_future()
    raise AssertionError("a parked run goes on")


def data_of(outcome: Outcome, before: msgspec.Raw) -> msgspec.Raw:
    """The data after an outcome."""
    return outcome.data if isinstance(outcome.data, msgspec.Raw) else before
