"""`Engine`: what users hold in their hands. It delegates everything.

Entering an engine opens its store and brings the schema up to date, then starts the worker: it registers a session,
takes back what is due, and keeps its lease. Leaving it goes the other way round: claim nothing more, let running steps
finish for a moment, release every run in motion so that others go on at once, end the session, close the store.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterable, Callable, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Never, Self, TypeVar, TypeVarTuple

from outlive._define.in_run import CURRENT_STEP
from outlive._define.live_resources import LiveResources, check_given
from outlive._define.map import Tolerance
from outlive._define.middleware import around_workflow, hooks_of
from outlive._define.registry import REGISTRY, Registry
from outlive._define.resources import Resource
from outlive._define.workflow import Startable, refuse_unknown
from outlive._journal.event import AnyEvent
from outlive._journal.packing import Packer, PayloadCodec
from outlive._journal.redaction import Redaction
from outlive._lease.contract import Leases
from outlive._model import Limits, Recovery, Retry, Run, given, known_run_id
from outlive._model.policy import check_retry
from outlive._replay.ask import current_execution
from outlive._runtime.clock import Clock, StoreClock, SystemClock
from outlive._runtime.commit.committer import Committer
from outlive._runtime.environment import Environment
from outlive._runtime.session.sessions import STORE_SECONDS, WorkerOptions, WorkerSessions
from outlive._runtime.tree.run_log import RunLog
from outlive._runtime.wakeup import Wakeup
from outlive._store.contract import Store
from outlive.client.access import check_loop
from outlive.client.batch import Batch
from outlive.client.batches import Batches
from outlive.client.checkpoints import CheckpointStore
from outlive.client.client import Client
from outlive.client.definitions import Describer
from outlive.client.handle import RunHandle
from outlive.client.recovery import Incomplete
from outlive.client.starting import OnConflict
from outlive.client.waiters import Waiters
from outlive.engine.finding import Finding
from outlive.engine.health import Health, health_of
from outlive.engine.interpreter import refuse_while_imported, tune_interpreter
from outlive.engine.interventions import Interventions
from outlive.engine.messages import Messages
from outlive.engine.sync import SyncEngine
from outlive.engine.url import is_server, leases_for, store_for
from outlive.errors import (
    ConfigurationError,
    EngineClosedError,
    EngineForkedError,
    InvalidArgumentError,
    NotDurableError,
)
from outlive.telemetry import Counters

R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

LEASE_SECONDS_MIN = 1.0


class Engine(Messages, Interventions, Finding):
    """Runs workflows on one store.

        async with outlive.Engine("sqlite:orders.db") as engine:
            run = await engine.start(checkout, order, id="order-42")
            receipt = await run.result()

    Several engines may live in one process; an engine belongs to the event loop that entered it.

    Args:
        url: `memory:`, `sqlite:orders.db`, `sqlite:/var/lib/orders.db` or `postgresql://user@host/database`.
        worker: whether this engine runs workflows; without, it only talks to the store.
        name: a name that is this worker's alone. When it comes back after a crash, on whatever machine, it takes its
            own runs at once; an older session of the same name is ended.
        lease: who keeps the leases: "store", "etcd://host:2379,host:2379/prefix", or "none" for a process that shares
            the store with no other.
        lease_seconds: after how long without a sign of life others take over the runs of this worker. (A killed process
            is noticed at once by others on the same machine; the lease is for hangs.)
        poll_seconds: how often the worker asks the store for what other processes made due.
        grace_seconds: how long running steps may take to finish when the engine stops.
        limits: how much of everything; see `Limits`.
        retry: for steps that this engine runs and that have no `retry` of their own, in workflows that have none.
        recovery: which runs of lost workers this one takes over, how fast, and which of them go on; see `Recovery`.
        codecs: compress or encrypt payloads, in this order.
        resources: what takes the place of resources: a value, which is used as it is, or another resource.
        middleware: what is around every start, step and workflow, the first one outermost; see `Middleware`.
        redact: fields that people may not see, as "password" or "card.number"; see `history` and `why`.
        tune: whether a worker may set two switches of the interpreter for the whole process (decision 0007).
        exit_when_stalled: whether the process ends, with code 70, when its event loop has stood still for as long as a
            lease; else only the session ends, and a new one begins when the loop turns again.
    """

    def __init__(
        self,
        url: str,
        *,
        worker: bool = True,
        name: str | None = None,
        lease: str = "store",
        lease_seconds: float = 10.0,
        poll_seconds: float = 0.25,
        grace_seconds: float = 5.0,
        limits: Limits | None = None,
        retry: Retry | None = None,
        recovery: Recovery | None = None,
        codecs: Sequence[PayloadCodec] = (),
        resources: Mapping[Resource[Any], Any] | None = None,
        middleware: Sequence[object] = (),
        redact: Sequence[str] = (),
        tune: bool = True,
        exit_when_stalled: bool = False,
        registry: Registry | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.url = url
        self.limits = given.option("Engine", "limits", limits, Limits)
        self._retry = check_retry("Engine", retry)
        self._recovery = given.option("Engine", "recovery", recovery, Recovery)
        self.counters = Counters()
        self._has_worker = given.flag("Engine", "worker", worker)
        self._name: str | None = None
        self._set_worker(
            name=name, lease_seconds=lease_seconds, grace_seconds=grace_seconds, exit_when_stalled=exit_when_stalled
        )
        self._tunes = given.flag("Engine", "tune", tune)
        self._poll_seconds = given.seconds("Engine", "poll_seconds", poll_seconds)
        self._registry = registry or REGISTRY
        self._clock = clock or SystemClock()
        self._packer = Packer(self.limits, codecs)
        self._resources = LiveResources(check_given(resources))
        self._hooks = hooks_of(middleware)
        self._redaction = Redaction(redact)
        self._store: Store = store_for(url, clock=self._clock.now, is_test_clock=clock is not None)
        self._leases_on = leases_for(lease, clock=self._clock)
        self._leases: Leases | None = None
        if clock is None and is_server(url):
            # What the store judges by its clock, others must stamp by the same.
            self._clock = StoreClock(self._store.now)
        self._committer: Committer | None = None
        self._client: Client | None = None
        self._stopping: Client | None = None
        """While it stops: steps that finish may still use its verbs."""
        self._waiters: Waiters | None = None
        self._sessions: WorkerSessions | None = None
        self._describer: Describer | None = None
        self._process = 0
        self._is_entered = False
        self._sync = SyncEngine(self)
        self._loop: asyncio.AbstractEventLoop | None = None

    _client_class = Client

    def _set_worker(
        self,
        *,
        name: str | None = None,
        lease_seconds: float | None = None,
        grace_seconds: float | None = None,
        exit_when_stalled: bool | None = None,
    ) -> None:
        """Settings of the worker that the command line may change before it is started."""
        if name is not None:
            self._name = _worker_name(name)
        if lease_seconds is not None:
            self._lease_seconds = _lease_seconds(lease_seconds)
        if grace_seconds is not None:
            self._grace_seconds = given.seconds("Engine", "grace_seconds", grace_seconds, or_zero=True)
        if exit_when_stalled is not None:
            self._exits_when_stalled = given.flag("Engine", "exit_when_stalled", exit_when_stalled)

    # -- Life ------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise ConfigurationError("this engine is running already; make another Engine(...) for a second one")
        refuse_while_imported()
        self._is_entered, self._process = True, os.getpid()
        try:
            await self._store.open()
            self._committer = Committer(
                self._store,
                counters=self.counters,
                batch_max=self.limits.commit_batch_max,
                overlaps=is_server(self.url),
            )
            self._waiters = Waiters(self._store, pause=self._pause, pause_seconds=self._poll_seconds)
            if self._has_worker:
                if self._tunes:
                    tune_interpreter()
                self._leases = self._leases_on(self._store)
                await self._leases.open()
                self._sessions = self._new_sessions(self._leases)
                await self._sessions.start()
                self._store.watch(self._sessions.ring)
                self._describer = Describer(self._store, self._registry)
                self._describer.start()
            self._client = self._new_client()
            self._loop = asyncio.get_running_loop()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def _stop(self) -> None:
        if self._process != os.getpid():
            return  # A fork has no part in it: everything belongs to the parent, which goes on.
        if self._loop is not None:
            check_loop(self._loop)
        self._loop = None
        if self._describer is not None:
            self._describer.close()
            self._describer = None
        client, self._client = self._client, None
        self._stopping = client
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._grace_seconds + STORE_SECONDS
        try:
            if self._sessions is not None:
                await self._sessions.stop(grace_seconds=self._grace_seconds)
            if self._waiters is not None:
                self._waiters.close()
            if self._committer is not None:
                await self._committer.drain(outage_seconds_max=0, silence_seconds=ends_at - loop.time())
        except (Exception, asyncio.CancelledError):
            # What is left open would go on by itself, and nothing could end it.
            await self._close(client)
            raise
        await self._close(client)

    async def _close(self, client: Client | None) -> None:
        if self._sessions is not None:
            self._sessions = None
            await self._resources.close()
        if self._waiters is not None:
            self._waiters.close()
        if self._committer is not None:
            self._committer.abandon()
            self._committer = None
        if self._leases is not None:
            await self._leases.close()
            self._leases = None
        self._stopping = None
        await self._store.close()
        if client is not None:
            client.close()
        self._is_entered = False

    async def _pause(self) -> None:
        await Wakeup().sleep(self._poll_seconds)

    def _new_sessions(self, leases: Leases) -> WorkerSessions:
        assert self._committer is not None
        assert self._waiters is not None
        environment = Environment(
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
        )
        options = WorkerOptions(
            name=self._worker_name,
            is_named=self._name is not None,
            lease_seconds=self._lease_seconds,
            poll_seconds=self._poll_seconds,
            exits_when_stalled=self._exits_when_stalled,
        )
        return WorkerSessions(
            environment,
            options,
            store=self._store,
            leases=leases,
            committer=self._committer,
            waiters=self._waiters,
            run_log=RunLog(self._redaction),
        )

    def _new_client(self) -> Client:
        assert self._waiters is not None
        assert self._committer is not None
        return self._client_class(
            store=self._store,
            packer=self._packer,
            limits=self.limits,
            registry=self._registry,
            redaction=self._redaction,
            waiters=self._waiters,
            ids=self._clock,
            commits=self._committer,
            worker=self._sessions,
            hooks=self._hooks,
        )

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that entered it; None while it does not run."""
        if self._loop is not None and self._process != os.getpid():
            raise EngineForkedError(self._process, os.getpid())
        return self._loop

    @property
    def _worker_name(self) -> str:
        """What its worker is called: its own name, or the host and the process."""
        return self._name or f"{socket.gethostname()}/{os.getpid()}"

    @property
    def sync(self) -> SyncEngine:
        """The same verbs for sync code: from other threads than that of the engine's event loop, or, in a program
        without one, as `with outlive.Engine(...).sync as engine:`."""
        return self._sync

    @property
    def _verbs(self) -> Client:
        if current_execution() is not None:
            raise NotDurableError("an engine's verb")
        client = self._client or (self._stopping if CURRENT_STEP.get(None) is not None else None)
        if client is None:
            raise EngineClosedError("this")
        if self._process != os.getpid():
            raise EngineForkedError(self._process, os.getpid())
        return client

    # -- Verbs -----------------------------------------------------------------------------------------------

    async def start(
        self,
        workflow: Startable[*Ts, R],
        *args: *Ts,
        id: str | None = None,
        on_conflict: OnConflict = "attach",
        timeout: given.Span | None = None,
        tags: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        connection: Any = None,
        **unknown: Never,
    ) -> RunHandle[R]:
        """Start a run; it is durable when this returns.

        Args:
            id: the same id again is the same run; made up unless given.
            on_conflict: when the id is taken: `attach` gives that run (if it is one of this workflow), `attach_open`
                does so if it has not ended, and else starts a new one, `reject` raises `RunExistsError`, `replace`
                cancels it and starts a new one. A run whose id is taken like this stays as `<id>~old1`.
            timeout: seconds that the run may take as a whole.
            tags: text for searching.
            headers: text for the run and all that it starts, in `current_run().headers` and `current_step().headers`.
            connection: your own connection to the PostgreSQL database that the store lies in, with a transaction open
                on it: the run is created in that transaction, and nothing of it runs before you commit.
        """
        refuse_unknown(workflow, unknown)
        client = self._verbs
        run_id = await client.start(
            workflow,
            args,
            id=id,
            on_conflict=on_conflict,
            timeout=timeout,
            tags=tags,
            headers=headers,
            connection=connection,
        )
        return RunHandle(client, run_id)

    def get(self, run_id: str) -> RunHandle[Any]:
        """A handle of a run; whether there is such a run shows when it is used."""
        return RunHandle(self._verbs, known_run_id("engine.get", run_id))

    async def start_batch(
        self,
        work: Callable[[T], Coroutine[object, None, R]],
        rows: Iterable[T] | AsyncIterable[T],
        *,
        concurrency: int = 20,
        id: str | None = None,
        tags: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        tolerate: Tolerance | None = None,
        connection: Any = None,
    ) -> Batch[R]:
        """Call a step or a workflow for each of many rows, each durable on its own; durable when this returns.

        Args:
            work: takes one argument, the row.
            rows: any iterable, sync or async; read once, a few hundred at a time.
            concurrency: how many items are under way at once, in all workers together.
            id: the same id again is the same batch, and its rows are not read again; made up unless given.
            headers: as of `start`; all items have them.
            tolerate: how many items may fail before the batch does; all of them unless given.
            connection: as of `start`: the batch exists if and only if you commit.

        Raises:
            RunExistsError: the id is that of something else.
        """
        return await Batches(self._verbs).start(
            work,
            rows,
            concurrency=concurrency,
            id=id,
            tags=tags,
            headers=headers,
            tolerate=tolerate,
            connection=connection,
        )

    def get_batch(self, batch_id: str) -> Batch[Any]:
        """A batch by its id; whether there is such a batch shows when it is used."""
        return Batches(self._verbs).get(known_run_id("engine.get_batch", batch_id, name="batch_id"))

    @property
    def checkpoints(self) -> CheckpointStore:
        """Checkpoints of programs that keep their own state, in the store of this engine and with its codecs. No run of
        the engine reads or writes them."""
        return self._verbs.checkpoints

    async def health(self) -> Health:
        """Whether this engine is ready: its store answers, its worker holds its lease, its resources are well."""
        store, worker = self._verbs.access.store, self._sessions
        return Health(
            store=await health_of(store),
            worker=None if worker is None else worker.health,
            resources=await self._resources.health(),
        )

    async def history(self, run_id: str, *, redacted: bool = False) -> list[AnyEvent]:
        """The journal of the tree that a run belongs to, verified.

        Args:
            redacted: as people may see it: payloads as JSON, decoded and without the fields in `redact`, which are
                also blacked out in failures and reasons.
        """
        return await self._verbs.history(run_id, redacted=redacted)

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
            RunExistsError: the id is taken. HistoryFormatError: the text is no exported run, or was changed or cut.
        """
        client = self._verbs
        scratch = store_for("memory:", clock=self._clock.now, is_test_clock=True)
        return RunHandle(client, await client.import_run(text, id=id, scratch=scratch))

    async def recovery(self, *, limit: int = 100, before: Run | None = None) -> list[Incomplete]:
        """Runs that do not move and why, newest first: parked, left behind by a worker that is gone, or due while no
        live worker has their definition. `before`, the last run of a page, gives the next one."""
        return await self._verbs.recovery(limit=limit, before=before)


def _worker_name(name: object) -> str:
    plain = given.text("Engine", "name", name, like="worker-1")
    if not plain.strip():
        wanted = "leave it out, or give every worker a name of its own, for example name='worker-1'"
        raise InvalidArgumentError("Engine", "name", name, wanted)
    return plain


def _lease_seconds(lease_seconds: object) -> float:
    seconds = given.seconds("Engine", "lease_seconds", lease_seconds)
    if seconds < LEASE_SECONDS_MIN:
        wanted = f"it is too short; give at least {LEASE_SECONDS_MIN:g}, for example lease_seconds=10"
        raise InvalidArgumentError("Engine", "lease_seconds", lease_seconds, wanted)
    return seconds
