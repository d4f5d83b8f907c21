"""Makes the kinds of states of one machine out of the functions of the user."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, get_type_hints

from outlive._define.machine.answer import Answer, unchanged
from outlive._define.machine.asking import Function, check_function, own_step, returned_states, undo_step
from outlive._define.machine.batch import BatchState, SlotsCodec
from outlive._define.machine.checks import check_states
from outlive._define.machine.joins import Join
from outlive._define.machine.kinds import Kind, LoopState, StepState
from outlive._define.machine.split import Branch, SplitState, result_codec
from outlive._define.machine.stream import POSITION, StreamState, Window
from outlive._define.machine.wire import OUTCOME
from outlive._define.resources import Resources, Wanted
from outlive._define.step import Step
from outlive._journal.arguments import Signature
from outlive._journal.value import ValueCodec, codec_for
from outlive._model import Retry, given
from outlive._model.breaker import Breaker
from outlive._model.guard import Cost, Guard
from outlive._model.limit import RateLimit
from outlive._model.policy import NO_RETRY
from outlive._replay.command import StepKind, StepOptions, StepSpec
from outlive.errors import DefinitionError

Targets = Collection[enum.Enum] | None


class Builder:
    """Knows what the states of one machine have in common: its name, its states, the type of its data."""

    def __init__(self, machine: str, states: type[enum.Enum], data: ValueCodec, resources: Resources) -> None:
        self._machine = machine
        self._states = states
        self._data = data
        self._wanted_by = resources.wanted_by

    def name_of(self, state: enum.Enum) -> str:
        """What journals call a state."""
        return given.label(f"machine {self._machine}", f"{self._machine}.{state.name}", name="state", like="RESERVE")

    def step(
        self,
        state: enum.Enum,
        fn: Function,
        to: Targets,
        *,
        undo: Step[..., Any] | Function | None,
        kind: StepKind | None,
        **options: Any,
    ) -> Kind:
        """A state that is one step."""
        answer, name = self._answer(state, fn, to), self.name_of(state)
        # What a transaction has written is taken back by its database.
        is_taken_back = undo is not None and kind is not StepKind.TRANSACTION
        read = answer.read_undoable if is_taken_back else answer.read
        step = own_step(
            name,
            fn,
            wanted=self._wanted_by(fn),
            codecs=[self._data],
            result=OUTCOME,
            finish=lambda values, returned: read(values[0], returned),
            undo=None
            if undo is None
            else undo_step(name, undo, self._data, wanted=None if isinstance(undo, Step) else self._wanted_by(undo)),
            kind=kind,
            **options,
        )
        return StepState(step, answer, fn)

    def on_loop(self, state: enum.Enum, fn: Function, to: Targets, *, is_router: bool) -> Kind:
        """A state whose code runs on the loop of the run."""
        check_function(self.name_of(state), fn)
        answer = self._answer(state, fn, to)
        if is_router and inspect.iscoroutinefunction(fn):
            raise DefinitionError(
                f"{self.name_of(state)}: router {fn.__qualname__} must be a plain function: write `def`, or make it "
                "`.workflow(...)` if it has to wait"
            )
        if not is_router and not inspect.iscoroutinefunction(fn):
            raise DefinitionError(
                f"{self.name_of(state)}: {fn.__qualname__} must be async: write `async def {fn.__name__}`"
            )
        return LoopState(self.name_of(state), fn, answer, self._data, is_router=is_router)

    def poll(self, state: enum.Enum, fn: Function, to: Targets, **options: Any) -> Kind:
        """A state that is a step again and again, with pauses."""
        answer = self._answer(state, fn, to, may_wait=True)
        step = own_step(
            self.name_of(state),
            fn,
            wanted=self._wanted_by(fn),
            codecs=[self._data],
            result=OUTCOME,
            finish=lambda values, returned: answer.read(values[0], returned),
            **options,
        )
        return StepState(step, answer, fn, word="poll")

    def stepped(self, state: enum.Enum, fn: Function, to: Targets, **options: Any) -> Kind:
        """A state that is a step again and again, with a cursor."""
        cursor = _cursor_codec(fn)
        answer = self._answer(state, fn, to, cursor=cursor)
        step = own_step(
            self.name_of(state),
            fn,
            wanted=self._wanted_by(fn),
            codecs=[self._data, cursor],
            result=OUTCOME,
            finish=lambda values, returned: unchanged(answer.read(values[0], returned), values[-1]),
            keeps_raw=True,
            **options,
        )
        return StepState(step, answer, fn, word="stepped", cursor=True)

    def stream(
        self,
        state: enum.Enum,
        to: Targets,
        *,
        source: Function,
        process: Function,
        flush: Function,
        then: enum.Enum,
        items: int,
        seconds: float | None,
        tolerate: int | Literal["all"],
        retry: Retry | None,
        timeout: float | None,
        guard: Guard | None,
    ) -> Kind:
        """A state that takes a source in windows."""
        name, answer = self.name_of(state), self._answer(state, flush, to)
        wanted = self._wanted_by(source, process, flush)
        window = Window(
            name,
            answer,
            _cursor_codec(source),
            source=source,
            process=process,
            flush=flush,
            then=then.name,
            items=items,
            seconds=seconds,
            tolerate=tolerate,
            wanted=wanted,
        )
        step = own_step(
            name,
            window.run,
            wanted=wanted,
            codecs=[self._data, POSITION],
            result=OUTCOME,
            finish=lambda values, outcome: unchanged(outcome, values[-1]),
            retry=retry,
            timeout=timeout,
            keeps_raw=True,
            guard=guard,
        )
        return StreamState(step, answer, flush, then=then.name)

    def split(
        self, state: enum.Enum, branches: Sequence[Branch] | Mapping[str, Branch], *, join: Join, **options: Any
    ) -> Kind:
        """A state with branches."""
        return SplitState(
            self.name_of(state),
            branches,
            self.answer(state, None if join.then is None else frozenset({join.then.name})),
            self._data,
            machine=self._machine,
            state=state.name,
            join=join,
            wanted_by=self._wanted_by,
            **options,
        )

    def batch(
        self,
        state: enum.Enum,
        to: Targets,
        *,
        load: Function,
        process: Function | Step[[Any], Any],
        finish: Function,
        concurrency: int,
        retry: Retry | None,
        item_retry: Retry | None,
        item_timeout: float | None,
        breaker: Breaker | None,
        limit: RateLimit | None,
        cost: Cost | None,
    ) -> Kind:
        """A state with items."""
        name, answer = self.name_of(state), self._answer(state, finish, to)
        check_function(f"{name}.load", load)
        loading = own_step(
            f"{name}.load",
            load,
            wanted=self._wanted_by(load),
            codecs=[self._data],
            result=result_codec(load),
            finish=lambda values, items: _many(items, answer),
            retry=retry,
        )
        item = process if isinstance(process, Step) else _plain_step(f"{name}.item", process, self._wanted_by(process))
        if not item.spec.signature.takes_one:
            raise DefinitionError(f"{name}: its process {item.name} must take one argument, an item")
        options = {"retry": item_retry, "timeout": item_timeout, "breaker": breaker, "limit": limit, "cost": cost}
        if any(option is not None for option in options.values()):
            item = item.options(**options)  # type: ignore[arg-type]
        slots = SlotsCodec(item.spec, registered=item_retry.on if item_retry is not None else ())
        finishing = own_step(
            name,
            finish,
            wanted=self._wanted_by(finish),
            codecs=[self._data, slots],
            result=OUTCOME,
            finish=lambda values, returned: answer.read(values[0], returned),
            retry=retry,
        )
        return BatchState(loading, item, finishing, slots, answer, finish, concurrency=concurrency)

    def _answer(
        self,
        state: enum.Enum,
        fn: Function,
        to: Targets,
        *,
        cursor: ValueCodec | None = None,
        may_wait: bool = False,
    ) -> Answer:
        members = returned_states(fn) if to is None else to
        if members is not None:
            check_states(self._machine, self._states, *members)
        targets = None if members is None else frozenset(each.name for each in members)
        return self.answer(state, targets, cursor=cursor, may_wait=may_wait)

    def answer(self, state: enum.Enum, to: frozenset[str] | None = None, **options: Any) -> Answer:
        """Reads what the user's code in a state returns."""
        return Answer(self._machine, state.name, self._states, self._data, to=to, **options)


def _many(items: Any, answer: Answer) -> Any:
    """What a batch has loaded, if that is items."""
    if not isinstance(items, Collection) or isinstance(items, str | bytes | Mapping):
        raise answer.refused(f"{items!r} from its load", "a list of items")
    return items


def _plain_step(name: str, fn: Function, wanted: Wanted | None) -> Step[[Any], Any]:
    """A step that only this machine knows."""
    spec = StepSpec(
        name=name,
        fn=fn,
        signature=Signature(fn, name, without=() if wanted is None else wanted.names),
        is_async=inspect.iscoroutinefunction(fn),
        options=StepOptions(retry=NO_RETRY),
        resources=None if wanted is None else wanted.get,
    )
    return Step(spec, spec.options)


def _cursor_codec(fn: Function) -> ValueCodec:
    """How the cursor is stored: by the annotation of the second parameter, and it may be None."""
    names = list(inspect.signature(fn).parameters)
    try:
        hint: Any = get_type_hints(fn).get(names[1], Any)
    except (NameError, TypeError, IndexError):
        hint = Any
    return codec_for(hint if hint is Any else hint | None)
