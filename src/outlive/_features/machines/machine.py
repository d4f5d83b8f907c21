"""`outlive.Machine`: a workflow that is written as states."""

from __future__ import annotations

import enum
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

from outlive._features.machines.batch import BatchState
from outlive._features.machines.building import Function, StateBuilder, check_states
from outlive._features.machines.checks import check_definition, is_same, problems_of
from outlive._features.machines.diagram import graph_of, mermaid
from outlive._features.machines.driver import Plan, driver_of
from outlive._features.machines.joins import Join
from outlive._features.machines.kinds import Delay, Kind, LoopState, StepState, TimerState
from outlive._features.machines.observer import HOOKS, Observer, hooks_of
from outlive._features.machines.picture import svg
from outlive._features.machines.split import Branch, SplitState
from outlive._features.machines.stream import StreamState
from outlive._features.machines.wire import MachineResult, MachineSignature, ResultCodec, StateResult, result_type
from outlive._kernel.define.declaration import Declaration
from outlive._kernel.define.live_resources import plain_resources
from outlive._kernel.define.registry import where as defined_at
from outlive._kernel.define.resources import Resource, Resources
from outlive._kernel.define.step import Step
from outlive._kernel.define.workflow import Workflow, WorkflowOptions
from outlive._kernel.journal.value import codec_for
from outlive._kernel.model import Retry, given
from outlive._kernel.model.breaker import Breaker
from outlive._kernel.model.guard import Cost, guard_of
from outlive._kernel.model.limit import RateLimit
from outlive._kernel.model.policy import check_retry
from outlive._kernel.model.queue import Queue, check_queue
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.replay.command import StepKind, WorkflowSpec
from outlive.errors import ConfigurationError, DefinitionError, InvalidArgumentError
from outlive.errors.program import MachineError

SNAPSHOT_AFTER = 5_000
"""A replay of that many events takes a few hundredths of a second."""

S = TypeVar("S", bound=enum.Enum)
D = TypeVar("D")
F = TypeVar("F", bound=Function)

UNDO_SECONDS = 3600.0
"""How long a roll-back may take unless a machine says otherwise: several undos that use up all their attempts."""


class _MachineOptions(WorkflowOptions, total=False):
    snapshot_after: int | None
    undo_timeout: given.Span | None


class Machine(Workflow[[D], MachineResult[S, D]], Generic[S, D]):
    """A workflow written as states; start it with `engine.start(machine, data, id=...)`.

    Args:
        name: what journals call it.
        states: an enumeration of its states; journals know each by its name.
        data: the type of what it carries from state to state; without it a machine carries nothing.
        start: where it begins.
        exits: where it ends; its result is the exit and the data.
        version: pinned by each run when it starts.
        timeout: seconds that a run may take as a whole, unless `engine.start(timeout=...)` says otherwise.
        undo_timeout: seconds that the roll-back of a run may take as a whole, after which the run is parked and says
            what is left; an hour unless given, None for as long as it takes.
        snapshot_after: how long the journal of a run may grow, in events, before a snapshot takes the place of what it
            has; None keeps all of it.
        signals: types of signals by name.
        approvals: types of the forms of approvals by name.
        raises: exception classes that reach a parent run as themselves.
        resumable: whether a run goes on by itself when its worker was lost; if not it is parked, and `engine.resume`
            lets it go on.
        retry: for its states, branches and items that have no `retry` of their own.
        schedule: when it starts by itself, by `outlive.cron` or `outlive.every`; several need names of their own.
        on_event: the type of the events that start it, or several; the data of the event is its data.
        queue: where runs that are started wait for their turn.
    """

    @overload
    def __init__(
        self: Machine[S, None],
        name: str,
        states: type[S],
        *,
        start: S,
        exits: Collection[S],
        **options: Unpack[_MachineOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        states: type[S],
        *,
        data: type[D],
        start: S,
        exits: Collection[S],
        **options: Unpack[_MachineOptions],
    ) -> None: ...
    def __init__(
        self,
        name: str,
        states: type[S],
        *,
        data: type[D] | None = None,
        start: S,
        exits: Collection[S],
        version: int = 1,
        snapshot_after: int | None = SNAPSHOT_AFTER,
        timeout: given.Span | None = None,
        undo_timeout: given.Span | None = UNDO_SECONDS,
        signals: Mapping[str, Any] | None = None,
        approvals: Mapping[str, Any] | None = None,
        raises: tuple[type[BaseException], ...] = (),
        resumable: bool = True,
        strict_arguments: bool = False,
        retry: Retry | None = None,
        schedule: Declaration | Sequence[Declaration] | None = None,
        on_event: str | Sequence[str] | None = None,
        queue: Queue | str | None = None,
    ) -> None:
        name = given.label("Machine", name, like="order")
        where = f"machine {name}"
        check_definition(name, states, start, exits)
        version = given.whole(where, "version", version)
        seconds = given.some_seconds(where, "timeout", timeout)
        undo_seconds = given.some_seconds(where, "undo_timeout", undo_timeout)
        if snapshot_after is not None:
            snapshot_after = given.whole(where, "snapshot_after", snapshot_after, or_none="to keep all events")
        self._data = codec_for(given.kind(where, "data", data))
        self.plan = Plan(
            name=name,
            states=states,
            start=start,
            exits=frozenset(each.name for each in exits),
            snapshot_after=snapshot_after,
            undo_seconds=undo_seconds,
            check=self.validate,
        )
        self._resources = Resources(name)
        self._observers: dict[str, tuple[Observer, ...]] = {}
        self._is_checked = False
        drive = driver_of(self.plan)
        caller = sys._getframe(1)
        drive.__module__ = caller.f_globals.get("__name__", __name__)
        drive.__name__ = drive.__qualname__ = name
        drive.__doc__ = f"The machine {name}."
        drive.__annotations__ = {"data": data, "return": result_type(exits, data)}
        drive.defined_at = f"{caller.f_code.co_filename}:{caller.f_lineno}"  # type: ignore[attr-defined]
        result = ResultCodec(states, self._data)
        spec = WorkflowSpec(
            name=name,
            version=version,
            fn=drive,
            signature=MachineSignature(name, data, result, is_required=data is not None),
            timeout_seconds=seconds,
            registered=given.exceptions(where, "raises", raises),
            # A machine without snapshots too: another worker may have code that takes some.
            forgets=True,
            resumable=given.flag(where, "resumable", resumable),
            strict_arguments=given.flag(where, "strict_arguments", strict_arguments),
            observers=self._observers,
            retry=check_retry(where, retry),
            queue=check_queue(where, queue),
            graph=lambda: graph_of(self.plan),
        )
        Workflow.__init__(self, spec, given.kinds(where, "signals", signals))
        self._register(given.kinds(where, "approvals", approvals), schedule, on_event)

    def __call__(self, *args: D, **kwargs: Any) -> Coroutine[object, None, MachineResult[S, D]]:
        """In a run: a child run in the same tree. Outside: the machine runs here and now, without a journal."""
        if current_execution() is not None:
            return super().__call__(*args, **kwargs)
        return self._run_plainly(args, kwargs)

    async def _run_plainly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> MachineResult[S, D]:
        self.validate()
        signature = self.spec.signature
        given, _ = signature.decode(signature.encode(args, kwargs))
        async with plain_resources():
            ended: StateResult = await self.spec.fn(*given)
        result: MachineResult[S, D] = signature.result.decode(signature.result.encode(ended, ""), "")
        return result

    # -- Its states ------------------------------------------------------------------------------------------

    def state(
        self,
        state: S,
        *,
        to: Collection[S] | None = None,
        retry: Retry | None = None,
        timeout: given.Span | None = None,
        heartbeat_timeout: given.Span | None = None,
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
            heartbeat_timeout: an attempt fails when it has not called `current_step().heartbeat()` for so many seconds
                and has emitted nothing.
            undo: takes its effect back if the machine fails later on: called with the data as this state left it.
            raises: exception classes that are kept as themselves.
            once: call it at most once; after a crash the machine fails with `StepInterruptedError`.
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
        options["heartbeat_timeout"] = heartbeat_timeout
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
            delay: seconds, a timedelta, an instant, or a plain function of the data that gives one.
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
        given.instance(self._where(state), "join", join, Join, like="outlive.machine.All(then=...)")
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
            flush: given the data and the list of what `process` returned; returns nothing to go on, or the next state.
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
        setup: Callable[..., Any] | Resource[Any],
        teardown: Callable[[Any], Any] | None = None,
        health: Callable[[Any], Any] | None = None,
    ) -> Resource[Any]:
        """Something that the handlers of a worker share; they ask for it by a keyword-only parameter of this name.

        Args:
            name: of the parameter.
            setup: makes it when it is wanted for the first time; may want other resources in the same way. Or an
                `outlive.resource`, which has all of it.
            teardown: given it, when the engine stops.
            health: given it, raises or says what is wrong; for `engine.health()`.

        Returns:
            The resource, for `Engine(resources={...})`.
        """
        where = f"{self.plan.name}.resource"
        made = self._resources.add(_parameter(where, name), setup, teardown, health)
        self._is_checked = False
        return made

    def observe(self, observer: Observer) -> None:
        """Have the hooks of an observer called for the runs of this machine, in processes that have said so before
        they start an engine.

        Raises:
            DefinitionError: it is not an `outlive.machine.Observer`, or has none of its hooks.
        """
        if not isinstance(observer, Observer):
            raise DefinitionError(
                f"{self.plan.name}.observe({observer!r}): give it an object of outlive.machine.Observer"
            )
        hooks = hooks_of(observer)
        if not hooks:
            wanted = f"define at least one of {', '.join(HOOKS)}"
            raise DefinitionError(f"{self.plan.name}.observe({observer!r}): it has no hook; {wanted}")
        for hook in hooks:
            known = self._observers.get(hook, ())
            if not any(each is observer for each in known):
                self._observers[hook] = (*known, observer)

    def _where(self, state: S) -> str:
        return f"state {getattr(state, 'name', state)} of machine {self.plan.name}"

    # -- As a whole ------------------------------------------------------------------------------------------

    def validate(self) -> None:
        """See whether the states fit together; done by itself before the first run.

        Raises:
            MachineError: some do not; names all that is wrong.
        """
        if not self._is_checked:
            problems = [*problems_of(self.plan), *self._resources.problems()]
            if problems:
                raise MachineError(self.name, problems)
            self._is_checked = True

    def diagram(self, form: Literal["mermaid", "svg"] = "mermaid") -> str:
        """The machine as a picture: the text of a Mermaid state diagram, or an SVG image.

        Raises:
            ConfigurationError: another form.
        """
        if form not in ("mermaid", "svg"):
            raise ConfigurationError(f'{self.name}.diagram({form!r}): give "mermaid" or "svg"')
        return svg(self.plan) if form == "svg" else mermaid(self.plan)

    def __repr__(self) -> str:
        return f"<machine {self.spec.name}@{self.spec.version}>"

    def _check_startable(self) -> None:
        self.validate()

    def _build(self, state: S) -> StateBuilder:
        return StateBuilder(self.plan.name, state, self.plan.states, self._data, self._resources)

    def _defining(self, state: S, build: Callable[[StateBuilder, Function], Kind]) -> Callable[[F], F]:
        self._check(state)

        def define(fn: F) -> F:
            self._add(state, build(self._build(state), fn))
            return fn

        return define

    def _check(self, *states: object) -> None:
        check_states(self.plan.name, self.plan.states, *states)

    def _add(self, state: S, kind: Kind) -> None:
        known = self.plan.kinds.get(state.name)
        if known is not None and not is_same(known, kind):
            places = " and ".join(defined_at(fn) for each in (known, kind) for fn in each.functions)
            raise MachineError(self.plan.name, [f"state {state.name} is defined twice{places and f': at {places}'}"])
        self.plan.kinds[state.name] = kind
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
