"""The verbs of a client. Each returns when what it did is durable.

A client writes only what no owner can contradict: new trees, messages in the inbox, and the end of a run that has no
owner because it is parked. Everything else is the business of the run's worker.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, Unpack, cast, get_args

from msgspec import UNSET

from outlive._kernel.client.access import STORE_WAIT_SECONDS, Access, OwnWorker
from outlive._kernel.client.acting import doing
from outlive._kernel.client.admission import Admission
from outlive._kernel.client.arrivals import has_published, has_status, in_time
from outlive._kernel.client.asks import AskSender
from outlive._kernel.client.bulk import BulkFilters, TreeFilters, for_each
from outlive._kernel.client.changing import Changer
from outlive._kernel.client.closing import closing_change, is_at_rest, trace_ends
from outlive._kernel.client.contract import ApprovalVerbs
from outlive._kernel.client.dead_letters import DeadLetters
from outlive._kernel.client.definitions import Definitions, Workflows, checked_input
from outlive._kernel.client.finding import Finder
from outlive._kernel.client.followers import Bell
from outlive._kernel.client.following import JournalReader
from outlive._kernel.client.forking import Forker
from outlive._kernel.client.inbox import Inbox
from outlive._kernel.client.interventions import Interventions
from outlive._kernel.client.message_key import key_of_cancel, key_of_signal, key_of_skip
from outlive._kernel.client.message_start import MessageStarts, NamedStart
from outlive._kernel.client.pausing import Pauser, wanted_workflow
from outlive._kernel.client.placing import own_place, undeclared_queue
from outlive._kernel.client.recovery import Incomplete, find_incomplete
from outlive._kernel.client.retrying import Retrier
from outlive._kernel.client.shown import Shown
from outlive._kernel.client.signal_many import ManySignals
from outlive._kernel.client.start_many import ManyStarts
from outlive._kernel.client.start_options import MessageConflict
from outlive._kernel.client.starting import Commits, Ids, Starter, read_tree
from outlive._kernel.client.starts import Starts
from outlive._kernel.client.streams import LookRest, StreamReader
from outlive._kernel.client.turns import Turns
from outlive._kernel.client.under_way import UnderWay
from outlive._kernel.client.unread import RunInbox
from outlive._kernel.client.waiters import Waiters
from outlive._kernel.client.why import WAITS_SHOWN_MAX, is_paused, is_stopped, is_untaken, why
from outlive._kernel.client.why_in_line import why_in_line, why_others_in_line
from outlive._kernel.define.middleware import NO_HOOKS, Hooks
from outlive._kernel.define.registry import Registry
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.journal.described import Described
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.journal.failure import OWN_ERRORS, exception_of
from outlive._kernel.journal.packing import Packer, inbox_mark, tree_mark
from outlive._kernel.journal.redaction import Redaction
from outlive._kernel.journal.value import TAGGED, encode_sent
from outlive._kernel.model import Limits, Run, RunStatus, WaitKind, given, known_run_id
from outlive._kernel.model.bounds import UNBOUND, Bounds
from outlive._kernel.model.long_journal import long_journal_shown
from outlive._kernel.model.remote import remote_step_of
from outlive._kernel.model.run import ENDED_BADLY, MOVING, OPEN
from outlive._kernel.model.under_way import StepUnderWay, timed_out
from outlive._kernel.model.why import Why
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Message, MessageKind, Outcome, Store
from outlive._kernel.values.event import Event, event_of
from outlive._kernel.values.outcome import RunOutcome
from outlive._kernel.values.run import Status
from outlive.errors import (
    ConfigurationError,
    InvalidArgumentError,
    ResultTimeoutError,
    RunCancelledError,
    RunFailedError,
    RunFinishedError,
    RunNotFoundError,
    RunParkedError,
    RunTimedOutError,
    StepFailedError,
    StoreError,
)
from outlive.errors.program import WorkflowNotFoundError
from outlive.errors.run import RunContinuedError, RunDamagedError, RunNotParkedError

V = TypeVar("V")


class Client:
    """Talks to runs through the store."""

    def __init__(
        self,
        *,
        store: Store,
        packer: Packer,
        limits: Limits,
        registry: Registry,
        redaction: Redaction,
        waiters: Waiters,
        ids: Ids,
        commits: Commits,
        worker: OwnWorker | None,
        hooks: Hooks = NO_HOOKS,
        admission: Admission | None = None,
        store_seconds: float = STORE_WAIT_SECONDS,
    ) -> None:
        self.access = access = Access(
            store,
            packer=packer,
            registry=registry,
            worker=worker,
            hooks=hooks,
            admission=admission,
            store_seconds=store_seconds,
        )
        self.shown, self._waiters = Shown(access, redaction), waiters
        self._under_way = UnderWay(access, self.shown)
        self.ids, self.new_id, self.nonce, self.limits = ids, ids.new_id, ids.nonce, limits
        self._made: dict[Callable[[Client], Any], Any] = {}
        self.turns = Turns()
        """For verbs that callers call in bursts."""
        self.starter = Starter(access, ids=ids, commits=commits, stop=self._stop_open)
        self.start, self.place = self.starter.start, self.starter.place
        """Start a run; its id. See `Engine.start`."""
        self.definitions = Definitions(access)
        self.sender = Inbox(access, definitions=self.definitions, inbox_messages_max=limits.inbox_messages_max)
        self.ring_service: Callable[[str], None] = lambda name: None
        """Lets the service of this name look soon, if the worker of this process has it."""
        self.find_definition, self.workflows = self.definitions.find, Workflows(self.definitions)
        """The workflows that workers can run. See `Engine.workflows.list`."""
        many = ManyStarts(
            access, turns=self.turns, starter=self.starter, definitions=self.definitions, new_id=ids.new_id
        )
        self.start_many = many.start
        """Start many runs; their ids. See `Engine.start_many`."""
        self.signal_many = ManySignals(access, turns=self.turns, inbox=self.sender, starts=many).send
        """Send many signals. See `Engine.signal_many`."""
        interventions = Interventions(access, start=self.starter.start, ended=self.ended, cancel=self._cancel)
        self._retrier = Retrier(access, interventions=interventions)
        self.fork = Forker(access, ids=ids, definitions=self.definitions, interventions=interventions).fork
        """Start a run with the history of another one; its id. See `Engine.fork`."""
        self.finder = finder = Finder(access)
        self.list, self.page, self.count, self.count_by = finder.list, finder.page, finder.count, finder.count_by
        self.approvals: ApprovalVerbs
        """See `Engine.approvals`; the feature gives them to the client (`InEngine.join`)."""
        self.export: Callable[[str], Awaitable[str]]
        """See `Engine.export`; the feature gives it to the client."""
        self._message_starts = MessageStarts(access, starter=self.starter, definitions=self.definitions)
        self.asks = AskSender(
            access,
            turns=self.turns,
            inbox=self.sender,
            starts=self._message_starts,
            waiters=waiters.answers,
            new_id=ids.new_id,
            wait=self.wait,
            why=self.why,
        )
        self.ask = self.asks._ask
        """See `Engine.ask`."""
        self._pauser = Pauser(access, inbox=self.sender, announce=waiters.announce)
        self.change = Changer(access, starter=self.starter, inbox=self.sender, announce=waiters.announce).change
        """Change an open run. See `Engine.change`."""
        self.inbox, self.dead_letters = RunInbox(access), DeadLetters(access)
        """See `Engine.inbox` and `Engine.dead_letters`."""
        self.streams = StreamReader(access, followers=waiters.followers, redaction=redaction, new_rest=self.new_rest)
        self.followers = waiters.followers
        """The readers that follow runs."""
        self.journals = JournalReader(access, shown=self.shown, followers=self.followers, new_rest=self.new_rest)
        self.follow, self.info = self.journals.entries, access.info
        """Every event of a run as it comes; its row. See `RunHandle.follow`."""
        if hooks.on_start:
            starts = Starts(hooks.on_start, start=self.start, new_id=ids.new_id)
            self.start = starts.start
            self.signal, self.ask = starts.through(self.signal), starts.through(self.ask)  # type: ignore[method-assign]

    def verbs_of(self, feature: Callable[[Client], V]) -> V:
        """The verbs of a feature for this client, which are made when they are first asked for."""
        found = self._made.get(feature)
        if found is None:
            found = self._made[feature] = feature(self)
        return cast(V, found)

    def close(self) -> None:
        """The engine has stopped: a start that is under way, and every later use of a handle, raises."""
        self.access.close()
        self.starter.close()
        self.turns.close()
        self.sender.close()

    async def start_named(self, named: NamedStart, **options: Any) -> str:
        """Start a run of a workflow whose code is not here; its id. See `Engine.start`."""
        chosen, described = await self.definitions.find(named.workflow, named.version)
        data = await checked_input(named.workflow, described, named.arguments)
        async with self.access.admission.start(options.get("id")):
            return await self.starter.start_described(named.workflow, chosen, described, data, **options)

    async def start_flow(self, flow: Workflow[..., Any], arguments: bytes, **options: Any) -> str:
        """Start a run of a flow whose steps need not be here; its id. See `Flows.start`."""
        spec = flow.spec
        described = Described(arguments={}, timeout_seconds=spec.timeout_seconds, queue=own_place(spec).queue)
        async with self.access.admission.start(options.get("id")):
            return await self.starter.start_described(spec.name, spec.version, described, arguments, **options)

    # -- What a run has done ---------------------------------------------------------------------------------

    async def journal(self, run_id: str) -> builtins.list[AnyEvent]:
        """The journal of the tree that a run belongs to, verified, as it is stored."""
        return await self.access.events(await self.info(run_id))

    async def history(self, run_id: str) -> builtins.list[Event]:
        """The journal of the tree that a run belongs to, as people may see it. See `Engine.history`."""
        run = await self.info(run_id)
        portions = self.journals.portions(run, -1)
        return [event_of(it.position, it.event, run.root_id) async for portion in portions for it in portion]

    async def list_stuck(self, *, limit: int = 100, before: str | None = None) -> builtins.list[Incomplete]:
        """Runs that do not move, and why. See `Engine.recovery`."""
        given.whole("engine.list_stuck", "limit", limit, most=PAGE_SIZE_MAX)
        last = None if before is None else await self.info(before)
        return await find_incomplete(self.access.store, limit=limit, before=last, shown=self.shown.run)

    async def published(self, run_id: str) -> dict[str, Any]:
        """The object that a run shows. See `RunHandle.published`."""
        run = await self.info(run_id)
        if run.published is None:
            return {}
        data = await self.access.unpack(run.published)
        fields: dict[str, Any] = TAGGED.decode(data, f"what run {run_id} published")
        return fields

    async def why(self, run_id: str, *, bounds: Bounds = UNBOUND) -> Why:
        """One sentence: what a run waits for, or how it ended. It tells nothing of other runs but those within the
        `bounds`."""
        run = await self.info(run_id)
        root = await self.access.root_of(run)
        run, root = await self.shown.runs([run, root])
        awaited = [wait.name for wait in root.waits if wait.kind is WaitKind.CHILD]
        store = self.access.store
        found = (await store.find_runs(awaited)).values() if awaited else ()
        others = {it.id: it for it in found if bounds.is_open or _is_of(it, root, bounds)}
        named = [others[run_id] for run_id in awaited[:WAITS_SHOWN_MAX] if run_id in others]
        pauses = await self._pauser.pauses()
        moves = await self._under_way.sentence(run, root, now_at=store.now()) if root.owner else ""
        if root.owner and (pause := await self._pauser.pause_ahead(root)):
            return Why(f"it is to be {pause}, when the steps that run have ended" + (moves and f"; now it is {moves}"))
        line = await why_in_line(store, root, bounds=bounds)
        other_line = await why_others_in_line(store, others.values(), bounds=bounds)
        workers, now_at = await store.list_workers(), store.now()
        shown = {it.id: it for it in await self.shown.runs(named)}
        unknown = ""
        if is_untaken([worker for worker in workers if worker.is_live], root):
            unknown = await undeclared_queue(store, root.queue, self.access.registry.workflows())
        sentence = why(
            run,
            root,
            workers,
            shown,
            now_at=now_at,
            pauses=pauses,
            line=line,
            other_line=other_line,
            doing=moves,
            unknown_queue=unknown,
        )
        long = await self._warning(run)
        return Why.of(sentence, "; ", long) if long else sentence

    async def _warning(self, run: Run) -> str:
        """The warning for a run whose journal is too long; empty for any other run."""
        events_max = self.limits.history_events_advised_max
        advice = long_journal_shown(run.workflow, events_max)
        if not advice or run.number or run.status not in MOVING:
            return ""
        read = self.access.store.read_journal
        if not await read(run.journal, after=events_max - 1, limit=1):
            return ""
        # A snapshot leaves numbers out: what counts is how many events there are.
        first, *_ = await read(run.journal, limit=1)
        return advice if await read(run.journal, after=first[0] + events_max - 1, limit=1) else ""

    async def steps(self, run_id: str, *, arguments: bool = False) -> builtins.list[StepUnderWay]:
        """The steps of a run that are under way. See `RunHandle.steps`."""
        given.flag("run.steps", "arguments", arguments)
        return await self._under_way.steps(await self.info(run_id), arguments=arguments)

    # -- Its end ---------------------------------------------------------------------------------------------

    async def result(self, run_id: str, timeout: given.Span | None = None) -> Any:
        """Wait for the end of a run. See `RunHandle.result`."""
        seconds = None if timeout is None else given.seconds("run.result", "timeout", timeout, or_zero=True)
        run = await self.ended(run_id, seconds)
        spec = self._spec_of(run)
        if run.status is RunStatus.SUCCEEDED:
            assert run.result is not None
            codec = TAGGED if spec is None else spec.signature.result
            data = await self.access.unpack(run.result, owners=(tree_mark(run.nonce),))
            return codec.decode(data, f"result of run {run_id}")
        if run.status is RunStatus.CANCELLED:
            raise RunCancelledError(run_id, f"was cancelled: {run.reason or 'no reason given'}")
        if run.status is RunStatus.TIMED_OUT:
            raise RunTimedOutError(run_id, timed_out(run.reason))
        if run.status is RunStatus.CONTINUED:
            raise RunContinuedError(run_id)
        assert run.failure is not None
        registered = () if spec is None else spec.registered
        cause = exception_of(run.failure, registered=(*registered, *OWN_ERRORS, StepFailedError))
        raise RunFailedError(run_id, f"failed: {run.failure.type}: {run.failure.message}", run.failure) from cause

    def _spec_of(self, run: Run) -> WorkflowSpec | None:
        try:
            return self.access.registry.workflow(run.workflow, run.version)
        except WorkflowNotFoundError:
            return None

    async def ended(self, run_id: str, timeout: float | None) -> Run:
        """A run that has ended.

        Raises:
            RunParkedError: its root is parked. RunDamagedError: its row, or that of its root, cannot be read.
        """
        while True:
            run = await self._stopped(run_id, timeout)
            if run.status.is_terminal:
                return run
            if run.status is RunStatus.DAMAGED:
                raise RunDamagedError(run_id, run.reason)
            # Looked at once more: a person may have let it go on since.
            root = await self.access.root_of(await self.info(run_id))
            if root.status is RunStatus.DAMAGED:
                raise RunDamagedError(run_id, root.reason)
            if is_stopped(root):
                raise RunParkedError(run_id, root.reason)

    async def _stopped(self, run_id: str, timeout: float | None) -> Run:
        """A run that has ended or, as far as this process knows, is parked."""
        _ = self.access.store  # Raises if it cannot be used.
        with self._waiters.waiting(run_id) as end:
            # Registered first, looked at second: an end between the two cannot be missed. A run that moves in this
            # process needs no look: its worker will announce its end.
            if self.access.worker is None or not self.access.worker.moves(run_id):
                try:
                    run = await self.info(run_id)
                except StoreError:
                    if end.done():
                        return end.result()  # The engine has stopped meanwhile, and that is what it says.
                    raise
                if run.status.is_terminal or is_stopped(await self.access.root_of(run)):
                    return run
                self._waiters.saw(run_id)
            await self.wait(end, timeout)
            if end.done():
                return end.result()
            assert timeout is not None
            raise ResultTimeoutError(run_id, timeout, await self.why(run_id))

    async def until(self, run_id: str, status: str, *, timeout: given.Span | None = None) -> Run:
        """A run once it has this status. See `RunHandle.until`."""
        wanted = RunStatus(given.one_of("run.until", "status", status, get_args(Status)))
        seconds = given.some_seconds("run.until", "timeout", timeout)
        work = has_status(self.access, self.followers, run_id, wanted, rest=self.new_rest(), settle=self._settle)
        return await in_time(work, run_id, seconds, what=f"come to {status}", why=lambda: self.why(run_id))

    async def field(self, run_id: str, name: str, *, timeout: given.Span | None = None) -> Any:
        """One field that a run publishes, once it is there. See `RunHandle.published`."""
        field = given.text("run.published", "key", name, like="stage")
        seconds = given.some_seconds("run.published", "timeout", timeout)

        work = has_published(self.streams.published(run_id), field, run_id, status=lambda: self.info(run_id))
        return await in_time(work, run_id, seconds, what=f"published {field!r}", why=lambda: self.why(run_id))

    async def _settle(self) -> None:
        """Before a look at a run. A client of tests waits until nothing moves any more without time passing."""

    async def wait(self, end: asyncio.Future[Any], timeout: float | None) -> None:
        """Wait for the end of a run, or for an answer, for at most so many seconds. A client of tests waits in skipped
        time."""
        if timeout is None:
            await end
        else:
            await asyncio.wait([end], timeout=timeout)

    def new_pause(self) -> Callable[[], Coroutine[Any, Any, None]]:
        """The pause between two looks at the store. A client of tests waits in skipped time."""
        return self._waiters.pause

    def new_rest(self) -> LookRest:
        """How a reader of a stream waits until there may be more. A client of tests waits in skipped time."""
        return Bell.wait

    # -- Messages --------------------------------------------------------------------------------------------

    async def signal(
        self,
        run_id: str,
        name: str,
        payload: Any = None,
        *,
        key: str | None = None,
        start: tuple[Any, ...] | None = None,
        headers: Mapping[str, str] | None = None,
        on_conflict: MessageConflict = "attach",
        connection: Any = None,
    ) -> None:
        """Send a signal to a run. See `Engine.signal`."""
        await self.turns.take()
        store = self.access.store
        run_id = known_run_id("engine.signal", run_id)
        name = given.text("engine.signal", "name", name, like="paid")
        if key is not None:
            key = given.text("engine.signal", "key", key, like="evt_123", most=given.KEY_CHARACTERS_MAX)
        if connection is not None and on_conflict != "attach":
            raise ConfigurationError(
                f"on_conflict={on_conflict!r} gives the run before another id, which cannot be part of your "
                f"transaction; leave it out, or send the signal without the connection"
            )
        async with self._message_starts.birth("engine.signal", run_id, start, headers, on_conflict) as birth:
            of = None if birth is None else (birth.workflow, birth.version)
            data = await self.sender.encode_signal(run_id, name, payload, of)
            stored, blob = self.access.packer.pack(data, f"signal {name!r}", of=inbox_mark(run_id))
            message = Message(
                run_id=run_id,
                kind=MessageKind.SIGNAL,
                at=store.now(),
                name=name,
                key=key_of_signal(run_id, name, key),
                payload=stored,
                blobs=(blob,) if blob else (),
            )
            change, again = (None, None) if birth is None else (birth.change, birth.again)
            await self.sender.deliver(message, start=change, again=again, connection=connection)

    async def cancel(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[TreeFilters]
    ) -> builtins.list[RunOutcome]:
        """Ask a run, or the runs that fit, to stop. See `Engine.cancel`."""
        reason = _reason("engine.cancel", reason)
        if run_id is not None and not filters:
            await self._cancel(run_id, reason=reason)
            return []
        verb, statuses = partial(self._cancel, reason=reason), OPEN
        return await self._each("engine.cancel", run_id, verb, statuses, filters, is_for_trees=False)

    async def _each(
        self,
        where: str,
        run_id: str | None,
        verb: Callable[[str], Coroutine[Any, Any, None]],
        statuses: tuple[RunStatus, ...],
        filters: TreeFilters,
        *,
        is_for_trees: bool = True,
    ) -> builtins.list[RunOutcome]:
        """Do something to all runs that fit."""
        if run_id is not None:
            raise InvalidArgumentError(where, "run_id", run_id, "give the id of a run, or filters, not both")
        return await for_each(self.finder, where, verb, statuses=statuses, is_for_trees=is_for_trees, **filters)

    async def _cancel(self, run_id: str, *, reason: str) -> None:
        with doing("cancel", run_id, reason):
            await self._ask_to_stop(run_id, reason)

    async def _stop_open(self, run_id: str) -> None:
        """Cancel a run that is to make room for another one, and return when it has ended."""
        with suppress(RunNotFoundError, RunFinishedError):
            await self._cancel(run_id, reason="started again under its id")
        with suppress(RunNotFoundError):
            await self.ended(run_id, None)

    async def _ask_to_stop(self, run_id: str, reason: str) -> None:
        run = await self.info(run_id)
        if run.status is RunStatus.CANCELLED:
            return
        root = await self.access.root_of(run)
        if root is run and is_at_rest(root) and await self._end_here(root, reason):
            return
        key = key_of_cancel(run.number, run.nonce)
        at = self.access.store.now()
        await self.sender.deliver(Message(run_id=run_id, kind=MessageKind.CANCEL, at=at, name=reason, key=key))
        if is_paused(await self.access.root_of(await self.info(run_id))):
            # Its code is fit to run, and cleans up. Another client may have resumed it by now, and it may have ended.
            with suppress(RunNotParkedError, RunFinishedError):
                await self._pauser.resume_run(run_id)

    async def _end_here(self, root: Run, reason: str) -> bool:
        """End a run whose code has nothing to clean up, or cannot; False if it moves all the same."""
        store = self.access.store
        rows, tree = await read_tree(store, root)
        if 0 not in tree or not is_at_rest(tree[0]):
            return False
        change = closing_change(tree, rows, reason=reason, at=store.now())
        outcome, _ = (await store.commit([change]))[0]
        if outcome is Outcome.COMMITTED:
            trace_ends(self.access.hooks.tracer, change, rows)
            self.access.ring()
            for run in change.runs:
                self._waiters.announce(run)
        return outcome is Outcome.COMMITTED

    async def resume(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        all: bool = False,
        **filters: Unpack[BulkFilters],
    ) -> builtins.list[RunOutcome]:
        """Let a run, a workflow, everything, or the runs that fit go on. See `Engine.resume`."""
        where, verb = "engine.resume", self._pauser.resume_run
        if filters and not all:
            return await self._each(
                where, run_id, verb, (RunStatus.PARKED,), {**filters, "workflow": workflow, "roots_only": True}
            )
        paused = wanted_workflow(where, run_id, workflow, everything=all)
        if paused is not None:
            await self._pauser.resume_workflow(paused)
            return []
        assert run_id is not None
        await verb(run_id)
        return []

    async def pause(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        all: bool = False,
        by: str = "",
        reason: str = "",
        **filters: Unpack[BulkFilters],
    ) -> builtins.list[RunOutcome]:
        """Let a run, a workflow, everything, or the runs that fit begin nothing more. See `Engine.pause`."""
        where = "engine.pause"
        reason = _reason(where, reason)
        by = given.text(where, "by", by, like="ann", least=0)
        verb = partial(self._pauser.pause_run, by=by, reason=reason)
        if filters and not all:
            return await self._each(where, run_id, verb, MOVING, {**filters, "workflow": workflow, "roots_only": True})
        paused = wanted_workflow(where, run_id, workflow, everything=all)
        if paused is not None:
            await self._pauser.pause_workflow(paused, by=by, reason=reason)
            return []
        assert run_id is not None
        await verb(run_id)
        return []

    async def retry(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[TreeFilters]
    ) -> builtins.list[RunOutcome]:
        """Let a run that has ended, or the runs that fit, go on. See `Engine.retry`."""
        where = "engine.retry"
        verb = partial(self._retrier.retry, reason=_reason(where, reason))
        if run_id is not None and not filters:
            await verb(run_id)
            return []
        return await self._each(where, run_id, verb, ENDED_BADLY, filters)

    def _resumption(self, root: Run) -> Message:
        if root.status is not RunStatus.PARKED:
            raise RunNotParkedError(root.id, root.status.value)
        return Message(run_id=root.id, kind=MessageKind.RESUME, at=self.access.store.now())

    async def skip_step(self, run_id: str, call: str | None = None, *, result: Any = UNSET) -> None:
        """Let a parked run go on without a step. See `Engine.skip_step`."""
        if call is not None:
            call = given.text("engine.skip_step", "call", call, like="charge", most=given.KEY_CHARACTERS_MAX)
        run = await self.info(run_id)
        root = await self.access.root_of(run)
        resumption = self._resumption(root)
        if run.status.is_terminal:
            raise RunFinishedError(run.id, run.status.value)
        payload = blob = None
        if result is not UNSET:
            what = f"the result given for a step of run {run.id}"
            data = encode_sent(result, what)
            payload, blob = self.access.packer.pack(data, what, of=inbox_mark(run.id))
        skip = Message(
            run_id=run.id,
            kind=MessageKind.SKIP,
            at=resumption.at,
            name=call or "",
            key=key_of_skip(run.number, nonce=root.nonce, epoch=root.epoch, call=call or ""),
            payload=payload,
            blobs=(blob,) if blob else (),
        )
        # The skip first: if only one of the two finds room in the inbox, the run must not go on without it.
        await self.sender.deliver(skip, then=resumption)


def _is_of(run: Run, root: Run, bounds: Bounds) -> bool:
    """Whether a run that another one waits for is of its tree, a task of it, or a root within these bounds."""
    is_own = run.root_id == root.id or bool(remote_step_of(run.workflow))
    return is_own or (not run.number and bounds.allow(run))


def _reason(where: str, reason: str) -> str:
    return given.text(where, "reason", reason, like="out of stock", least=0, most=given.TEXT_CHARACTERS_MAX)
