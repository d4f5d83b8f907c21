"""`Engine`: what users hold in their hands. It delegates everything.

Entering an engine opens its store and brings the schema up to date, then starts the worker: it registers a session,
takes back what is due, and keeps its lease. Leaving it goes the other way round (`parts`).
"""

from __future__ import annotations

import asyncio
import builtins
import os
import socket
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import Any, Self, TypeVar, TypeVarTuple, Unpack, overload

from msgspec import UNSET

from outlive._features.approvals.verbs import Approvals
from outlive._features.batches.batch import Batch
from outlive._features.batches.starting import Batches, BatchOptions, BatchStarter
from outlive._features.bulk.verbs import BulkOperations
from outlive._features.checkpoints.store import CheckpointStore, checkpoints_of
from outlive._features.events.verbs import Events
from outlive._features.flows.verbs import Flows
from outlive._features.moving.exporting import Exporting
from outlive._features.namespaces.quotas import QuotaGuard, Quotas
from outlive._features.promises.verbs import Promises
from outlive._features.queues.verbs import Queues, only_queue
from outlive._features.retention.purging import Purging
from outlive._features.retention.values import Purge
from outlive._features.schedules.verbs import Schedules
from outlive._features.security.audit_log import AuditLog
from outlive._features.security.keys import Keys
from outlive._features.tasks.verbs import Tasks
from outlive._kernel.client.access import STORE_WAIT_SECONDS, check_loop
from outlive._kernel.client.asks import AskOptions, AskSender
from outlive._kernel.client.bulk import BulkFilters, TreeFilters, WorkflowFilters
from outlive._kernel.client.changing import ChangeOptions
from outlive._kernel.client.client import Client
from outlive._kernel.client.dead_letters import DeadLetters
from outlive._kernel.client.definitions import Describer, Workflows
from outlive._kernel.client.finding import COUNT_MAX, Filters, Order, Page
from outlive._kernel.client.handle import RunHandle, StoredRun
from outlive._kernel.client.message_start import given_by_name
from outlive._kernel.client.recovery import Incomplete
from outlive._kernel.client.signal_many import OneSignal, SignalCall
from outlive._kernel.client.start_many import OneStart, WorkflowCall
from outlive._kernel.client.start_options import MessageConflict, OwnStartOptions, StartOptions, start_arguments
from outlive._kernel.client.turns import CALLS_PER_TURN_MAX
from outlive._kernel.client.unread import RunInbox
from outlive._kernel.client.workers import Workers
from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.live_resources import LiveResources, check_given
from outlive._kernel.define.middleware import around_workflow, hooks_of
from outlive._kernel.define.registry import REGISTRY, Registry
from outlive._kernel.define.resources import Resource
from outlive._kernel.define.workflow import Startable
from outlive._kernel.in_engine import WorkerParts
from outlive._kernel.journal.packing import Packer, PayloadCodec
from outlive._kernel.journal.redaction import Redaction
from outlive._kernel.lease.contract import Leases
from outlive._kernel.model import Limits, Recovery, Retry, given, known_run_id
from outlive._kernel.model.policy import check_retry
from outlive._kernel.model.retention import KEEP_SECONDS_MIN, Keep, KeepAudit, check_retention
from outlive._kernel.model.run import GroupField
from outlive._kernel.model.under_way import StepUnderWay
from outlive._kernel.model.worker import WorkerOptions, worker_options
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.runtime.clock import Clock, StoreClock, SystemClock
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.lifetime import Lifetime
from outlive._kernel.runtime.session.sessions import WorkerSessions
from outlive._kernel.runtime.session.watchdog import Watchdog
from outlive._kernel.runtime.tree.run_log import RunLog
from outlive._kernel.store.contract import Store
from outlive._kernel.values.count import Count
from outlive._kernel.values.event import Event
from outlive._kernel.values.outcome import RunOutcome
from outlive._kernel.values.run import Run
from outlive.engine.any_engine import AnyEngine, SyncEngine
from outlive.engine.configured import options_of
from outlive.engine.health import Health, health_now, health_of
from outlive.engine.interpreter import refuse_while_imported, tune_interpreter
from outlive.engine.namespace import in_namespace
from outlive.engine.parts import Parts
from outlive.engine.services import FeaturesInWorker, load_features
from outlive.engine.url import is_server, leases_for, store_for
from outlive.engine.view import View
from outlive.engine.work import Work
from outlive.errors import ConfigurationError, EngineClosedError
from outlive.errors.program import EngineForkedError, NotDurableError
from outlive.telemetry import Counters

R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


API = "outlive.http.app"
"""Where the API is. It stands above the engine and imports it, so that it is named here and not imported."""
DASHBOARD = "outlive.dashboard.files"
"""Where the dashboard is; it stands above the API."""


class Engine(AnyEngine):
    """Runs workflows on one store.

        async with outlive.Engine("sqlite:orders.db") as engine:
            run = await engine.start(checkout, order, id="order-42")
            receipt = await run.result()

    Several engines may live in one process; an engine belongs to the event loop that entered it.

    Args:
        url: `memory:`, `sqlite:orders.db`, `sqlite:/var/lib/orders.db` or `postgresql://user@host/database`.
        worker: whether this engine runs workflows, and how (`WorkerOptions`); with False it only talks to the store.
        namespace: the tenant whose runs these are: a store of its own in the store of the URL; see `engine.quotas`.
        poll_seconds: how often the store is asked for what other processes made due, if this one did not hear of it.
        store_seconds: how long a verb waits for a store that does not answer, before it raises `StoreUnavailableError`.
            Runs wait for it however long it is away.
        limits: how much of everything; see `Limits`.
        retry: for steps that this engine runs and that have no `retry` of their own, in workflows that have none.
        recovery: which runs of lost workers this one takes over, how fast, and which of them go on; see `Recovery`.
        codecs: compress or encrypt payloads, in this order.
        resources: what takes the place of resources: a value, which is used as it is, or another resource.
        middleware: what is around every start, step and workflow, the first one outermost; see `Middleware`.
        retention: how long runs stay after their end (`Keep`), and the audit log (`KeepAudit`); else for ever.
        redact: fields that people may not see, as "password" or "card.number"; see `history` and `why`.
        record_arguments: whether the journal has the arguments of steps with their outcomes, for people: without what
            `redact` names, and cut to some kilobytes.
    """

    def __init__(
        self,
        url: str,
        *,
        worker: bool | WorkerOptions = True,
        namespace: str | None = None,
        poll_seconds: float = 0.25,
        store_seconds: float = STORE_WAIT_SECONDS,
        limits: Limits | None = None,
        retry: Retry | None = None,
        recovery: Recovery | None = None,
        codecs: Sequence[PayloadCodec] = (),
        resources: Mapping[Resource[Any], Any] | None = None,
        middleware: Sequence[object] = (),
        retention: Sequence[Keep | KeepAudit] = (),
        redact: Sequence[str] = (),
        record_arguments: bool = False,
        _registry: Registry | None = None,
        _clock: Clock | None = None,
    ) -> None:
        self.url = url = in_namespace(url, namespace)
        self._quota = None if namespace is None else QuotaGuard(lambda: self._store, namespace=namespace)
        self.limits = given.option("Engine", "limits", limits, Limits)
        self._retry = check_retry("Engine", retry)
        self._recovery = given.option("Engine", "recovery", recovery, Recovery)
        self.counters = Counters()
        self._worker, self._has_worker = worker_options(worker)
        self._store_seconds = given.seconds("Engine", "store_seconds", store_seconds)
        self._poll_seconds = given.seconds("Engine", "poll_seconds", poll_seconds)
        self._registry = (_registry or REGISTRY).with_own_flows()
        self._clock = _clock or SystemClock()
        self._packer = Packer(self.limits, codecs)
        self._resources = LiveResources(check_given(resources))
        self._hooks = hooks_of(middleware, [] if self._quota is None else [self._quota])
        self._redaction = Redaction(redact, refuses_plain=self._packer.refuses_plain)
        self._records = given.flag("Engine", "record_arguments", record_arguments)
        self._retention = check_retention(retention)
        new_store = partial(store_for, url, clock=self._clock.now, is_test_clock=_clock is not None)
        self._store: Store = new_store()
        self._new_store = None if url.startswith("memory:") else new_store
        self._leases_on = leases_for(self._worker.lease, clock=self._clock)
        if _clock is None and is_server(url):
            # The store judges leases by its clock, so others must stamp by it.
            self._clock = StoreClock(self._store.now)
        self._parts = Parts()
        self._process, self._running = 0, threading.Lock()
        self._work: Work | None = None
        self._sync = SyncEngine(self)

    _client_class = Client

    @classmethod
    def configured(cls, file: str | os.PathLike[str] | None = None, **options: Any) -> Self:
        """An engine with the settings of the nearest `outlive.toml` and of the environment.

        Args:
            file: another file; the flows of this process have the table `[flows]` of it from now on.
            options: as `Engine` takes them; they win.

        Raises:
            InvalidSettingsError: it has every mistake in the settings, each with its place.
        """
        return cls(**options_of(file, options))

    # -- Life ------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        refuse_while_imported()
        load_features()
        if not self._running.acquire(blocking=False):  # Held until it has stopped; two threads may come at once.
            raise ConfigurationError("this engine is running already; make another Engine(...) for a second one")
        self._process, self._parts = os.getpid(), Parts()
        parts = self._parts
        try:
            await parts.open(
                self._store,
                counters=self.counters,
                commit_batch_max=self.limits.commit_batch_max,
                overlaps=is_server(self.url),
                poll_seconds=self._poll_seconds,
            )
            if self._has_worker:
                await self._start_worker()
            else:
                parts.watchdog = Watchdog(clock=self._clock, counters=self.counters).start()
            parts.client = self._new_client()
            if parts.features is not None:
                await parts.features.declare()
                parts.services = parts.features.start_services(parts.client)
            parts.loop = asyncio.get_running_loop()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    def work(
        self, lifetime: given.Span | None = None, *, until_idle: bool = False, runs_max: int | None = None
    ) -> Work:
        """Work for a while in a host that ends: a function, a job of cron, a container that is stopped at a known time.

            done = await engine.work("50s", until_idle=True)

        The engine must not be running: this enters it, works until one of the bounds is reached, releases every run so
        that other workers go on at once, and leaves it. A step whose timeout does not fit into what is left is not
        begun, nor is a step without a timeout in the last `grace_seconds`; their runs are left to workers with more
        time. To use the verbs of the engine meanwhile, write `async with engine.work("50s", until_idle=True) as work:`.
        At the end of the block it works on until a bound is reached, and then `work.done` says the same.

        Args:
            lifetime: how long it may take in all, from now on; the last second is for the release.
            until_idle: whether it ends when nothing that this worker can do is due.
            runs_max: it claims so many runs and no more, and ends with the last of them.

        Returns:
            What happened and what is left: `outlive.types.WorkDone`.

        Raises:
            ConfigurationError: no bound is given, the engine has no worker, or it is running already.
            InvalidArgumentError: the grace leaves nothing of the lifetime.
        """
        seconds = given.some_seconds("engine.work", "lifetime", lifetime, or_none="for no end")
        given.flag("engine.work", "until_idle", until_idle)
        if runs_max is not None:
            runs_max = given.whole("engine.work", "runs_max", runs_max)
        if seconds is None and runs_max is None and not until_idle:
            raise ConfigurationError("engine.work has no bound; give a lifetime, until_idle=True or runs_max=")
        if not self._has_worker:
            raise ConfigurationError("this engine has no worker, so that it cannot work; leave worker=False out")
        bounds = Lifetime(
            seconds,
            grace_seconds=self._worker.grace_seconds,
            runs_max=runs_max,
            counters=self.counters,
            monotonic=self._clock.monotonic,
        )
        return Work(self, bounds, until_idle=until_idle)

    async def _stop(self) -> None:
        if self._process != os.getpid():
            return  # A fork has no part in it: everything belongs to the parent, which goes on.
        if self._parts.loop is not None:
            check_loop(self._parts.loop)
        try:
            work = self._work
            grace_seconds = self._worker.grace_seconds if work is None else work.lifetime.grace_left
            released = None if work is None or self._parts.client is None else work.look_left
            await self._parts.stop(self._store, self._resources, grace_seconds=grace_seconds, released=released)
        finally:
            if self._running.locked():  # It is not if the engine was stopped before; to stop it again does nothing.
                self._running.release()

    def _environment(self) -> Environment:
        return Environment(
            self._clock,
            self.counters,
            self.limits,
            self._recovery,
            self._packer,
            self._registry,
            self._resources,
            on_step=self._hooks.on_step,
            around=around_workflow(self._hooks),
            engine=self,
            retry=self._retry,
            tracer=self._hooks.tracer,
            recording=self._redaction if self._records else None,
            redaction=self._redaction,
            lifetime=None if self._work is None else self._work.lifetime,
        )

    def _new_sessions(self, leases: Leases) -> WorkerSessions:
        parts = self._parts
        assert parts.committer is not None
        assert parts.waiters is not None
        return WorkerSessions(
            self._environment(),
            self._worker,
            name=self._worker_name,
            poll_seconds=self._poll_seconds,
            store=self._store,
            leases=leases,
            committer=parts.committer,
            waiters=parts.waiters,
            run_log=RunLog(self._redaction),
            new_store=self._new_store,
        )

    async def _start_worker(self) -> None:
        parts, worker = self._parts, self._worker
        if worker.tune:
            tune_interpreter()
        parts.leases = self._leases_on(self._store)
        await parts.leases.open()
        parts.sessions = self._new_sessions(parts.leases)
        redefine, environment = parts.sessions.redefine, self._environment()
        parts.features = FeaturesInWorker(WorkerParts(self._store, environment, worker, self._retention, redefine))
        await parts.features.before_claims()
        await parts.sessions.start()
        self._store.watch(parts.ring)
        parts.describer = Describer(self._store, self._registry)
        parts.describer.start()

    def _new_client(self) -> Client:
        parts = self._parts
        assert parts.waiters is not None
        assert parts.committer is not None
        client = self._client_class(
            store=self._store,
            packer=self._packer,
            limits=self.limits,
            registry=self._registry,
            redaction=self._redaction,
            waiters=parts.waiters,
            ids=self._clock,
            commits=parts.committer,
            worker=parts.sessions,
            hooks=self._hooks,
            admission=self._quota,
            store_seconds=self._store_seconds,
        )
        for part in load_features():
            part.join(client)
        return client

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that entered it; None while it does not run."""
        if self._parts.loop is not None and self._process != os.getpid():
            raise EngineForkedError(self._process, os.getpid())
        return self._parts.loop

    @property
    def _worker_name(self) -> str:
        """The name of its worker: its own, or the host and the process."""
        return self._worker.name or f"{socket.gethostname()}/{os.getpid()}"

    @property
    def sync(self) -> SyncEngine:
        """These verbs for sync code, in other threads; without a loop `with outlive.Engine(...).sync as engine:`."""
        return self._sync

    @property
    def _verbs(self) -> Client:
        if current_execution() is not None:
            raise NotDurableError("an engine's verb")
        client = self._parts.client or (self._parts.stopping if CURRENT_STEP.get(None) is not None else None)
        if client is None:
            raise EngineClosedError("this")
        if self._process != os.getpid():
            raise EngineForkedError(self._process, os.getpid())
        return client

    # -- Starting --------------------------------------------------------------------------------------------

    @overload
    async def start(
        self, workflow: Startable[*Ts, R], *args: *Ts, **options: Unpack[OwnStartOptions]
    ) -> RunHandle[R]: ...
    @overload
    async def start(
        self,
        workflow: str,
        arguments: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        version: int | None = None,
        **options: Unpack[StartOptions],
    ) -> RunHandle[Any]: ...
    async def start(  # type: ignore[misc]  # No *Ts is compared.
        self, workflow: Any, *args: Any, version: int | None = None, **options: Unpack[OwnStartOptions]
    ) -> RunHandle[Any]:
        client = self._verbs
        # Inline: each start comes by here.
        turns = client.turns
        turns.in_turn += 1
        if turns.in_turn > CALLS_PER_TURN_MAX:
            await turns.wait()
        elif turns.in_turn == 1:
            asyncio.get_running_loop().call_soon(turns.next_turn, context=Context())
        said: dict[str, Any] = {**options}
        if isinstance(workflow, str):
            named = given_by_name("engine.start", workflow, args, version, said)
            return StoredRun(client, await client.start_named(named, **start_arguments(workflow, said, by_name=True)))
        if version is not None:
            said["version"] = version
        return StoredRun(client, await client.start(workflow, args, **start_arguments(workflow, said)))

    async def start_many(
        self, starts: Iterable[WorkflowCall | OneStart], **options: Unpack[StartOptions]
    ) -> builtins.list[RunHandle[Any]]:
        client = self._verbs
        return [StoredRun(client, run_id) for run_id in await client.start_many(starts, options)]

    def get(self, run_id: str) -> RunHandle[Any]:
        return StoredRun(self._verbs, known_run_id("engine.get", run_id))

    @overload
    async def start_batch(
        self,
        work: Callable[[T], Coroutine[object, None, R]],
        rows: Iterable[T] | AsyncIterable[T],
        **options: Unpack[BatchOptions],
    ) -> Batch[R]: ...
    @overload
    async def start_batch(
        self,
        work: str,
        rows: Iterable[Any] | AsyncIterable[Any],
        *,
        version: int | None = None,
        **options: Unpack[BatchOptions],
    ) -> Batch[Any]: ...
    async def start_batch(
        self, work: Any, rows: Any, *, version: int | None = None, **options: Unpack[BatchOptions]
    ) -> Batch[Any]:
        return await BatchStarter(self._verbs).begin(work, rows, version=version, **options)

    # -- Finding ---------------------------------------------------------------------------------------------

    async def list(
        self, *, order: Order = "-created_at", limit: int = 100, after: str | None = None, **filters: Unpack[Filters]
    ) -> Page[Run]:
        return await View(self._verbs).runs(order=order, limit=limit, after=after, **filters)

    async def info(self, run_id: str) -> Run:
        return await self.get(run_id).info()

    async def count(self, *, limit: int = COUNT_MAX, **filters: Unpack[Filters]) -> Count:
        return await self._verbs.count(limit=limit, **filters)

    async def count_by(self, by: GroupField, *, limit: int = COUNT_MAX, **filters: Unpack[Filters]) -> dict[str, Count]:
        return await self._verbs.count_by(by, limit=limit, **filters)

    # -- What users send to runs -----------------------------------------------------------------------------

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
        await self._verbs.signal(
            run_id,
            name,
            payload,
            key=key,
            start=start,
            headers=headers,
            on_conflict=on_conflict,
            connection=connection,
        )

    async def signal_many(self, signals: Iterable[SignalCall | OneSignal]) -> None:
        await self._verbs.signal_many(signals)

    @overload
    async def ask(self, run_id: str, name: str, body: Any = None, **options: Unpack[AskOptions]) -> Any: ...
    @overload
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: type[T], **options: Unpack[AskOptions]
    ) -> T: ...
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: Any = Any, **options: Unpack[AskOptions]
    ) -> Any:
        return await self._verbs.ask(run_id, name, body, reply=reply, **options)

    # -- What operators do to runs ---------------------------------------------------------------------------

    async def cancel(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[TreeFilters]
    ) -> builtins.list[RunOutcome]:
        return await self._verbs.cancel(run_id, reason=reason, **filters)

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
        if (queue := only_queue(run_id, workflow, filters)) is not None and not all:
            await self.queues.pause(queue, by=by, reason=reason)
            return []
        return await self._verbs.pause(run_id, workflow=workflow, all=all, by=by, reason=reason, **filters)

    async def resume(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        all: bool = False,
        **filters: Unpack[BulkFilters],
    ) -> builtins.list[RunOutcome]:
        if (queue := only_queue(run_id, workflow, filters)) is not None and not all:
            await self.queues.resume(queue)
            return []
        return await self._verbs.resume(run_id, workflow=workflow, all=all, **filters)

    async def retry(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[TreeFilters]
    ) -> builtins.list[RunOutcome]:
        return await self._verbs.retry(run_id, reason=reason, **filters)

    async def fork(
        self,
        run_id: str,
        *,
        at: str | int | None = None,
        set: Mapping[str, Any] | None = None,
        input: tuple[Any, ...] | Mapping[str, Any] | None = None,
        version: int | None = None,
        id: str | None = None,
        reason: str = "",
    ) -> RunHandle[Any]:
        client = self._verbs
        new_id = await client.fork(run_id, at=at, set=set, input=input, version=version, id=id, reason=reason)
        return StoredRun(client, new_id)

    async def change(self, run_id: str, *, reason: str = "", **changes: Unpack[ChangeOptions]) -> None:
        await self._verbs.change(run_id, reason=reason, **changes)

    async def skip_step(self, run_id: str, call: str | None = None, *, result: Any = UNSET) -> None:
        await self._verbs.skip_step(run_id, call, result=result)

    # -- Looking at runs, and taking them to another store ---------------------------------------------------

    async def history(self, run_id: str) -> builtins.list[Event]:
        return await self._verbs.history(run_id)

    async def steps(self, run_id: str, *, arguments: bool = False) -> builtins.list[StepUnderWay]:
        return await self._verbs.steps(run_id, arguments=arguments)

    async def list_stuck(self, *, limit: int = 100, before: str | None = None) -> builtins.list[Incomplete]:
        return await self._verbs.list_stuck(limit=limit, before=before)

    async def export(self, run_id: str) -> str:
        """The tree that a run belongs to, verified, as lines of JSON: for `outlive.testing.replay`, and for
        `import_run` on another store.

        A run that moves too fast to be read as a whole gives its journal alone, which can be replayed and not imported:
        pause it first.
        """
        return await self._verbs.export(run_id)

    async def import_run(self, text: str, *, id: str | None = None) -> RunHandle[Any]:
        """Bring a run here that `export` took out of another store, with its tree, its blobs and its messages.

        It is checked first, as `outlive fsck` checks a store, and is here as a whole or not at all. A run that has not
        ended goes on here: cancel it in the other store, or both of them call the steps that are left.

        Args:
            id: another id for the root; its own unless given.

        Raises:
            RunExistsError: the id is taken. HistoryFormatError: the text is not an exported run, or was changed or cut.
        """
        client = self._verbs
        scratch = store_for("memory:", clock=self._clock.now, is_test_clock=True)
        return StoredRun(client, await client.verbs_of(Exporting).import_run(text, id=id, scratch=scratch))

    async def purge(
        self,
        *,
        older_than: given.Span = KEEP_SECONDS_MIN,
        archive: str | os.PathLike[str] | None = None,
        **filters: Unpack[WorkflowFilters],
    ) -> Purge:
        return await self._verbs.verbs_of(Purging).purge(older_than=older_than, archive=archive, **filters)

    # -- The engine itself -----------------------------------------------------------------------------------

    async def health(self) -> Health:
        store = await health_of(self._verbs.access.store)
        sessions = self._parts.sessions
        worker = None if sessions is None else sessions.health
        return health_now(store, worker, await self._resources.health())

    def asgi(self, *, dashboard: bool = True, **options: Any) -> Any:
        """The HTTP API of this engine and its dashboard, as an ASGI app: `app.mount("/outlive", engine.asgi())`.

        Args:
            dashboard: whether browsers get the dashboard at the root of the app.
            options: as `outlive.http.Api` takes them: `auth`, `hosts`, `origins`, `limits`, `proxies`, `webhooks`.
        """
        pages = import_module(DASHBOARD).pages() if dashboard else None
        return import_module(API).Api(self, pages=pages, **options)

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """Enter this engine while an application lives: `FastAPI(lifespan=engine.lifespan)`."""
        async with self:
            yield

    @property
    def approvals(self) -> Approvals:
        """Approvals: list, approve, reject; and links with which a person decides without a key."""
        return self._verbs.verbs_of(Approvals)

    @property
    def promises(self) -> Promises:
        """Settles the promises of runs: resolve, fail."""
        return self._verbs.verbs_of(Promises)

    @property
    def asks(self) -> AskSender:
        """Asks that were sent before: answer waits for what the run says."""
        return self._verbs.asks

    @property
    def inbox(self) -> RunInbox:
        """Messages that runs have not read: list."""
        return self._verbs.inbox

    @property
    def dead_letters(self) -> DeadLetters:
        """Messages that runs could not read: list."""
        return self._verbs.dead_letters

    @property
    def batches(self) -> Batches:
        """Batches that `start_batch` started: list, get, retry."""
        return Batches(self._verbs)

    @property
    def workflows(self) -> Workflows:
        """The workflows that workers can run: list."""
        return self._verbs.workflows

    @property
    def keys(self) -> Keys:
        """API keys: create, list, revoke."""
        return Keys(self._verbs.access)

    @property
    def audit(self) -> AuditLog:
        """The log of the actions of people and keys, from the store: list, verify; see `engine.audit.acting`."""
        keep = next((keep for keep in self._retention if isinstance(keep, KeepAudit)), None)
        return AuditLog(self._verbs.access, keep)

    @property
    def schedules(self) -> Schedules:
        """When workflows start by themselves: list, set, pause, resume, trigger, backfill, delete."""
        return Schedules(self._verbs)

    @property
    def bulk(self) -> BulkOperations:
        """One verb for many runs, in the background: start, get, list."""
        return BulkOperations(self._verbs)

    @property
    def tasks(self) -> Tasks:
        """The tasks of remote steps, for programs that take them: claim, heartbeat, complete, fail."""
        return self._verbs.verbs_of(Tasks)

    @property
    def queues(self) -> Queues:
        """Where runs wait for their turn: list, stats, set, reset, pause, resume, drain."""
        return Queues(self._verbs)

    @property
    def workers(self) -> Workers:
        """Which processes work on the store: list."""
        return Workers(self._verbs.access)

    @property
    def quotas(self) -> Quotas:
        """How much the callers of this namespace may start."""
        return Quotas(self._verbs)

    @property
    def events(self) -> Events:
        """Sends events, each of which starts one run of every workflow that has a trigger for it."""
        return self._verbs.verbs_of(Events)

    @property
    def flows(self) -> Flows:
        """The library of flows in the store: apply, get, list, history, rollback, drafts, enable, disable, delete."""
        return Flows(self._verbs)

    @property
    def checkpoints(self) -> CheckpointStore:
        """Checkpoints of programs that keep their own state, in this store and with its codecs; no run uses them."""
        return self._verbs.verbs_of(checkpoints_of)
