"""Makes the functions of the user the steps of one state of a machine."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from outlive._features.machines.answer import Answer
from outlive._features.machines.wire import STATE_RESULT, Pieces, reader
from outlive._kernel.define.resources import Resources, WantedResources, count_taken
from outlive._kernel.define.step import NO_RESULT, UNDO_RETRY, Step, as_undo
from outlive._kernel.journal.value import ValueCodec, codec_for
from outlive._kernel.model import Retry, given
from outlive._kernel.model.guard import Guard
from outlive._kernel.model.policy import check_retry
from outlive._kernel.replay.command import StepKind, StepOptions, StepSpec
from outlive.errors import DefinitionError
from outlive.errors.program import MachineError

Function = Callable[..., Any]
Targets = Collection[enum.Enum] | None


class StateBuilder:
    """The parts with which every kind of state is built: the names of the machine and the state, the type of the
    data."""

    def __init__(
        self, machine: str, state: enum.Enum, states: type[enum.Enum], data: ValueCodec, resources: Resources
    ) -> None:
        self.machine = machine
        self.state = state.name
        self.name = given.label(f"machine {machine}", f"{machine}.{state.name}", name="state", like="RESERVE")
        """The name of the state in journals."""
        self.data = data
        self.wanted_by = resources.wanted_by
        self._states = states

    def answer(
        self,
        fn: Function | None = None,
        to: Targets = None,
        *,
        cursor: ValueCodec | None = None,
        may_wait: bool = False,
    ) -> Answer:
        """Reads what the user's code in this state returns; where it may go is given, or read from its annotations."""
        members = returned_states(fn) if to is None and fn is not None else to
        if members is not None:
            check_states(self.machine, self._states, *members)
        targets = None if members is None else frozenset(each.name for each in members)
        return Answer(self.machine, self.state, self._states, self.data, to=targets, cursor=cursor, may_wait=may_wait)

    def step(
        self,
        fn: Function,
        *,
        name: str = "",
        codecs: Sequence[ValueCodec] = (),
        result: ValueCodec = STATE_RESULT,
        finish: Callable[[list[Any], Any], Any] | None = None,
        retry: Retry | None = None,
        timeout: given.Span | None = None,
        heartbeat_timeout: given.Span | None = None,
        undo: StepSpec | None = None,
        raises: tuple[type[BaseException], ...] = (),
        kind: StepKind | None = None,
        keeps_raw: bool = False,
        guard: Guard | None = None,
        wanted: WantedResources | None = None,
    ) -> StepSpec:
        """A function of the user as a step.

        Args:
            fn: the function.
            name: what journals call it; as the state unless given.
            codecs: of what it is given besides the data; a function that takes fewer arguments is given fewer.
            result: how its result is stored.
            finish: makes the result of the step, from what the function was given and what it returned.
            keeps_raw: give `finish` also the data as they were stored, as the last of what was given.
            wanted: the resources that it is given by keyword, if its own parameters do not say that.
        """
        name = name or self.name
        check_function(name, fn)
        wanted = wanted or self.wanted_by(fn)
        policy = check_retry(name, retry)
        count = 1 + len(codecs)
        return StepSpec(
            name=name,
            fn=_called(name, fn, finish, count, extra=kind is StepKind.TRANSACTION, wanted=wanted),
            signature=Pieces(reader(name, [self.data, *codecs], keeps_raw=keeps_raw), result),
            is_async=inspect.iscoroutinefunction(fn),
            options=StepOptions(
                retry=policy,
                timeout_seconds=given.some_seconds(name, "timeout", timeout),
                heartbeat_seconds=given.some_seconds(name, "heartbeat_timeout", heartbeat_timeout),
                undo=undo,
                guard=_guard_given(name, guard, count),
            ),
            registered=(*given.exceptions(name, "raises", raises), *(policy.on if policy else ())),
            kind=kind,
            resources=wanted,
        )

    def undo(self, undo: Step[..., Any] | Function) -> StepSpec:
        """The step that undoes the state: called with the data as the state left them."""
        if isinstance(undo, Step):
            if not undo.spec.signature.takes_one:
                raise DefinitionError(f"{self.name}: its undo {undo.name} must take one argument, the data")
            spec = as_undo(undo.spec, undo.call_options)
            return msgspec.structs.replace(spec, signature=Pieces(undo.spec.signature.decode, NO_RESULT))
        spec = self.step(undo, name=f"{self.name}.undo", result=NO_RESULT, retry=UNDO_RETRY)
        return msgspec.structs.replace(spec, options=msgspec.structs.replace(spec.options, parks=True))


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
        raise DefinitionError(f"{name}: {fn!r} is not a function; write `def` or `async def`")


def check_states(machine: str, states: type[enum.Enum], *given: object) -> None:
    """Refuse what is not a state of a machine where one must stand.

    Raises:
        MachineError: names it.
    """
    # Not by `in`: a string is equal to a member of a StrEnum, and has no name.
    strangers = [f"{each!r} is not a state of {states.__qualname__}" for each in given if not isinstance(each, states)]
    if strangers:
        raise MachineError(machine, strangers)


def _guard_given(name: str, guard: Guard | None, count: int) -> Guard | None:
    """The guard of a state, whose cost is a function of what its handler is given, or of the first part of that."""
    if guard is None or not callable(guard.cost):
        return guard
    cost, takes = guard.cost, count_taken(name, guard.cost, count)
    return replace(guard, cost=lambda *values: cost(*values[:takes]))


def _called(
    name: str,
    fn: Function,
    finish: Callable[[list[Any], Any], Any] | None,
    given: int,
    *,
    extra: bool,
    wanted: WantedResources | None,
) -> Function:
    """The function of the step; the transaction, if there is one, comes first."""
    takes = count_taken(name, fn, given + extra, wanted=wanted)

    def end(values: tuple[Any, ...], returned: Any) -> Any:
        return returned if finish is None else finish([*values[extra:]], returned)

    async def call(*values: Any, **resources: Any) -> Any:
        return end(values, await fn(*values[:takes], **resources))

    def call_sync(*values: Any, **resources: Any) -> Any:
        return end(values, fn(*values[:takes], **resources))

    called: Function = call if inspect.iscoroutinefunction(fn) else call_sync
    called.__module__, called.__qualname__, called.__name__ = fn.__module__, fn.__qualname__, fn.__name__
    return called


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


def cursor_codec(fn: Function) -> ValueCodec:
    """How the cursor is stored: by the annotation of the second parameter, and it may be None."""
    names = list(inspect.signature(fn).parameters)
    try:
        hint: Any = get_type_hints(fn).get(names[1], Any)
    except (NameError, TypeError, IndexError):
        hint = Any
    return codec_for(hint if hint is Any else hint | None)
