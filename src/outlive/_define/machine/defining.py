"""The verbs that give a machine its states."""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from outlive._define.machine.batch import BatchState
from outlive._define.machine.building import Function, StateBuilder, check_states
from outlive._define.machine.checks import is_same
from outlive._define.machine.driver import Plan
from outlive._define.machine.joins import Join
from outlive._define.machine.kinds import Delay, Kind, LoopState, StepState, TimerState
from outlive._define.machine.observer import HOOKS, Observer, hooks_of
from outlive._define.machine.split import Branch, SplitState
from outlive._define.machine.stream import StreamState
from outlive._define.registry import where
from outlive._define.resources import Resource, Resources
from outlive._define.step import Step
from outlive._journal.value import ValueCodec
from outlive._model import Retry, given
from outlive._model.breaker import Breaker
from outlive._model.guard import Cost, guard_of
from outlive._model.limit import RateLimit
from outlive._replay.command import StepKind
from outlive.errors import DefinitionError, InvalidArgumentError, MachineError

S = TypeVar("S", bound=enum.Enum)
D = TypeVar("D")
F = TypeVar("F", bound=Function)


class Definition(Generic[S, D]):
    """The states of a machine, while they are defined."""

    def __init__(
        self,
        name: str,
        states: type[S],
        data: ValueCodec,
        *,
        start: S,
        exits: Collection[S],
        snapshot_after: int | None,
    ) -> None:
        self._data = data
        names = frozenset(each.name for each in exits)
        self._plan = Plan(name, states, start=start, exits=names, snapshot_after=snapshot_after)
        self._resources = Resources(name)
        self._observers: dict[str, tuple[Observer, ...]] = {}
        self._is_checked = False

    def state(
        self,
        state: S,
        *,
        to: Collection[S] | None = None,
        retry: Retry | None = None,
        timeout: given.Span | None = None,
        undo: Step[..., Any] | Callable[..., Any] | None = None,
        raises: tuple[type[BaseException], ...] = (),
        once: bool = False,
        transaction: bool = False,
        breaker: Breaker | None = None,
        limit: RateLimit | None = None,
        cost: Cost | None = None,
    ) -> Callable[[F], F]:
        """A state whose handler is a step: given the data, it returns the next state, or that and other data.

        Args:
            state: the state.
            to: where it may go; read from `-> Literal[S.A, S.B]` unless given.
            retry: when failed attempts are tried again.
            timeout: seconds that one attempt may take.
            undo: takes its effect back if the machine fails later on: called with the data as this state left it.
            raises: exception classes that are kept as themselves.
            once: call it at most once; after a crash the machine fails with `StepInterrupted`.
            transaction: run it in a transaction of the store's database, its first argument.
            breaker: stops calling it while it fails again and again.
            limit: how often it may be called.
            cost: of one call, for `limit`: a number, or a plain function of the data.
        """
        where = self._where(state)
        if given.flag(where, "once", once) and given.flag(where, "transaction", transaction):
            raise DefinitionError(f"{where}: once=True and transaction=True exclude each other; choose one")
        given.flag(where, "transaction", transaction)
        kind = StepKind.ONCE if once else StepKind.TRANSACTION if transaction else None
        guard = guard_of(where, breaker, limit, cost)
        options: dict[str, Any] = {"retry": retry, "timeout": timeout, "raises": raises, "guard": guard}
        return self._defining(state, lambda builder, fn: StepState(builder, fn, to, undo=undo, kind=kind, **options))

    def router(self, state: S, *, to: Collection[S] | None = None) -> Callable[[F], F]:
        """A state that only decides: a plain function of the data, without effects, without an event."""
        return self._defining(state, lambda builder, fn: LoopState(builder, fn, to, is_router=True))

    def workflow(self, state: S, *, to: Collection[S] | None = None) -> Callable[[F], F]:
        """A state whose handler is workflow code: it may call steps, wait for signals and approvals, start children."""
        return self._defining(state, lambda builder, fn: LoopState(builder, fn, to, is_router=False))

    def poll(
        self,
        state: S,
        *,
        to: Collection[S] | None = None,
        retry: Retry | None = None,
        timeout: given.Span | None = None,
        breaker: Breaker | None = None,
        limit: RateLimit | None = None,
        cost: Cost | None = None,
    ) -> Callable[[F], F]:
        """A state that asks again and again: its handler returns `Pending(delay)`, or where to go.

        Each poll is a step and each pause is durable. `retry` is for one poll: that many errors in a row are borne.
        So are `breaker`, `limit` and `cost`.
        """
        options: dict[str, Any] = {
            "retry": retry,
            "timeout": timeout,
            "guard": guard_of(self._where(state), breaker, limit, cost),
        }
        return self._defining(state, lambda builder, fn: StepState(builder, fn, to, word="poll", **options))

    def stepped(
        self,
        state: S,
        *,
        to: Collection[S] | None = None,
        retry: Retry | None = None,
        timeout: given.Span | None = None,
        breaker: Breaker | None = None,
        limit: RateLimit | None = None,
        cost: Cost | None = None,
    ) -> Callable[[F], F]:
        """A state that works its way through something, given the data and a cursor, which is None at first.

        Its handler returns `More(cursor)`, or where to go. Each cursor is journaled: a crash costs one step. The
        options, `breaker` and `limit` too, are for one step.
        """
        options: dict[str, Any] = {
            "retry": retry,
            "timeout": timeout,
            "guard": guard_of(self._where(state), breaker, limit, cost),
        }
        return self._defining(state, lambda builder, fn: StepState(builder, fn, to, word="stepped", **options))

    def timer(self, state: S, delay: Delay | Callable[[D], Delay], *, then: S | None = None) -> None:
        """A state that only waits, durably.

        Args:
            state: the state.
            delay: seconds, a timedelta, an instant, or a plain function of the data that gives one of these.
            then: where it goes.
        """
        self._check(state, *(() if then is None else (then,)))
        self._add(state, TimerState(self._build(state), delay, then))

    def split(
        self,
        state: S,
        branches: Sequence[Branch] | Mapping[str, Branch],
        *,
        join: Join,
        merge: Callable[..., Any] | None = None,
        retry: Retry | None = None,
        timeout: given.Span | None = None,
        concurrency: int | None = None,
    ) -> None:
        """A state with branches side by side, each durable on its own.

        Args:
            state: the state.
            branches: functions, steps or workflows that are given the data; their results are for `merge`.
            join: how many must succeed, and where it goes then.
            merge: a plain function of the data and the results by branch (a failed branch: its exception; a cancelled
                one: nothing); it changes the data or returns other data.
            retry: for branches that are plain functions.
            timeout: seconds that the split may take as a whole.
            concurrency: how many branches run at once, at most.
        """
        given.instance(self._where(state), "join", join, Join, like="outlive.All(then=...)")
        self._check(state, *(() if join.then is None else (join.then,)))
        where = self._where(state)
        given.several(where, "branches", branches, like="[wrap, label], functions, steps or workflows")
        if concurrency is not None:
            concurrency = given.whole(where, "concurrency", concurrency, or_none="for all at once")
        seconds = given.some_seconds(where, "timeout", timeout)
        kind = SplitState(
            self._build(state), branches, join=join, merge=merge, retry=retry, timeout=seconds, concurrency=concurrency
        )
        self._add(state, kind)

    def batch(
        self,
        state: S,
        *,
        load: Function,
        process: Function | Step[[Any], Any],
        finish: Function,
        to: Collection[S] | None = None,
        concurrency: int = 1,
        retry: Retry | None = None,
        item_retry: Retry | None = None,
        item_timeout: given.Span | None = None,
        breaker: Breaker | None = None,
        limit: RateLimit | None = None,
        cost: Cost | None = None,
    ) -> None:
        """A state that works on many items, each a step of its own.

        Args:
            state: the state.
            load: given the data, returns the list of items.
            process: given one item, returns its result.
            finish: given the data and the list of results (an item that failed: its exception), returns where to go.
            to: where it may go; read from the annotation of `finish` unless given.
            concurrency: how many items run at once, at most.
            retry: for `load` and `finish`.
            item_retry: for each item.
            item_timeout: seconds that one attempt of an item may take.
            breaker: for the items.
            limit: for the items.
            cost: of one item, for `limit`: a number, or a plain function of the item.
        """
        self._check(state)
        kind = BatchState(
            self._build(state),
            to,
            load=load,
            process=process,
            finish=finish,
            concurrency=given.whole(self._where(state), "concurrency", concurrency),
            load_and_finish_retry=retry,
            retry=item_retry,
            timeout=given.some_seconds(self._where(state), "item_timeout", item_timeout),
            breaker=breaker,
            limit=limit,
            cost=cost,
        )
        self._add(state, kind)

    def stream(
        self,
        state: S,
        *,
        source: Callable[..., AsyncGenerator[Any, None]],
        process: Function,
        flush: Function,
        then: S,
        to: Collection[S] | None = None,
        items: int = 1,
        seconds: given.Span | None = None,
        tolerate: int | Literal["all"] = 0,
        retry: Retry | None = None,
        timeout: given.Span | None = None,
        breaker: Breaker | None = None,
        limit: RateLimit | None = None,
        cost: Cost | None = None,
    ) -> None:
        """A state that takes items of a source in windows; each window is a step, journaled with its cursor.

        Args:
            state: the state.
            source: an async generator of `(cursor, item)`; given the data and the last cursor, it begins behind that.
            process: given one item, returns what becomes of it.
            flush: given the data and the list of these; returns nothing to go on, or the next state to stop.
            then: where it goes when the source is over.
            to: where `flush` may go.
            items: how many items are a window, at most.
            seconds: how long a window is open after its first item.
            tolerate: how many items in a row may fail and are dropped; "all" for any number.
            retry: for a window.
            timeout: seconds that one attempt of a window may take.
            breaker: for the windows.
            limit: for the windows.
            cost: of one window, for `limit`: a number, or a plain function of the data.
        """
        self._check(state, then)
        where = self._where(state)
        if tolerate != "all":
            tolerate = _tolerated(where, tolerate)
        kind = StreamState(
            self._build(state),
            to,
            source=source,
            process=process,
            flush=flush,
            then=then,
            items=given.whole(where, "items", items),
            seconds=given.some_seconds(where, "seconds", seconds, or_none="to wait until the window is full"),
            tolerate=tolerate,
            retry=retry,
            timeout=given.some_seconds(where, "timeout", timeout),
            guard=guard_of(where, breaker, limit, cost),
        )
        self._add(state, kind)

    def resource(
        self,
        name: str,
        setup: Callable[..., Any],
        teardown: Callable[[Any], Any] | None = None,
        health: Callable[[Any], Any] | None = None,
    ) -> None:
        """Something that the handlers of a process share; they ask for it by a keyword-only parameter of this name.

        Args:
            name: of the parameter.
            setup: makes it when it is wanted for the first time; may want other resources in the same way.
            teardown: given it, when the last engine of the process has stopped.
            health: given it, raises or says what is wrong; for `health()`.
        """
        self._resources.add(Resource(_parameter(f"{self._plan.name}.resource", name), setup, teardown, health))
        self._is_checked = False

    def observe(self, observer: Observer) -> None:
        """Have the hooks of an observer called for the runs of this machine, in processes that have said so before
        they start an engine.

        Raises:
            DefinitionError: it is no `outlive.Observer`, or has none of its hooks.
        """
        if not isinstance(observer, Observer):
            raise DefinitionError(f"{self._plan.name}.observe({observer!r}): give it an object of outlive.Observer")
        hooks = hooks_of(observer)
        if not hooks:
            wanted = f"define at least one of {', '.join(HOOKS)}"
            raise DefinitionError(f"{self._plan.name}.observe({observer!r}): it has no hook; {wanted}")
        for hook in hooks:
            known = self._observers.get(hook, ())
            if not any(each is observer for each in known):
                self._observers[hook] = (*known, observer)

    def _where(self, state: S) -> str:
        return f"state {getattr(state, 'name', state)} of machine {self._plan.name}"

    def _build(self, state: S) -> StateBuilder:
        return StateBuilder(self._plan.name, state, self._plan.states, self._data, self._resources)

    def _defining(self, state: S, build: Callable[[StateBuilder, Function], Kind]) -> Callable[[F], F]:
        self._check(state)

        def define(fn: F) -> F:
            self._add(state, build(self._build(state), fn))
            return fn

        return define

    def _check(self, *states: object) -> None:
        check_states(self._plan.name, self._plan.states, *states)

    def _add(self, state: S, kind: Kind) -> None:
        known = self._plan.kinds.get(state.name)
        if known is not None and not is_same(known, kind):
            places = " and ".join(where(fn) for each in (known, kind) for fn in each.functions)
            raise MachineError(self._plan.name, [f"state {state.name} is defined twice{places and f': at {places}'}"])
        self._plan.kinds[state.name] = kind
        self._is_checked = False


def _tolerated(where: str, items: object) -> int:
    try:
        return given.whole(where, "tolerate", items, least=0)
    except InvalidArgumentError as error:
        raise type(error)(where, "tolerate", items, f'{error.wanted}; or "all" for any number of items') from None


def _parameter(where: str, name: object) -> str:
    """A name that a parameter can have."""
    plain = given.text(where, "name", name, like="db")
    if not plain.isidentifier():
        raise InvalidArgumentError(where, "name", name, "use the name of a parameter, for example name='db'")
    return plain
