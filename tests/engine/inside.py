"""The one door by which tests reach into an engine that runs: its parts, and its end as a kill would bring it.

Everything else in `tests` uses what an engine promises. A change of how an engine is built changes this file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import apsw
import msgspec
import pytest

import outlive
from outlive._features.bulk.verbs import BulkOperations
from outlive._features.bulk.workflow import BulkPage, BulkRequest
from outlive._kernel.client.client import Client
from outlive._kernel.client.handle import StoredRun
from outlive._kernel.client.secret_token import new_token
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import Run
from outlive._kernel.runtime.commit.committer import Committer
from outlive._kernel.runtime.environment import ReplayPace
from outlive._kernel.runtime.lease_deadline import LeaseDeadline
from outlive._kernel.runtime.reporter import Reporter
from outlive._kernel.runtime.session.claimer import Claimer
from outlive._kernel.runtime.session.dead_sessions import DeadSessionEnder
from outlive._kernel.runtime.session.keeper import LeaseKeeper
from outlive._kernel.runtime.session.sessions import WorkerSessions
from outlive._kernel.runtime.session.worker import SessionWorker
from outlive._kernel.runtime.steps.executor import Executor
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.store.audit import Action
from outlive._kernel.store.contract import Store
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.sqlite import SqliteStore
from outlive._platform import HAS_BYTE_LOCKS
from outlive.flow import FlowWorkflow
from outlive.telemetry import Counters
from outlive.testing.engine import TestEngine
from outlive.testing.watched_store import WatchedStore
from outlive.types import ApiKey

S = TypeVar("S", bound=WatchedStore)
T = TypeVar("T")


def store_of(engine: outlive.Engine) -> Store:
    """Its store."""
    return engine._store


def give_store(engine: outlive.Engine, store: Any) -> None:
    """Let it use another store; before it is entered."""
    engine._store = store
    if isinstance(engine, TestEngine):
        engine._watched = store


def watch_through(engine: TestEngine, watched: Callable[[Store], S]) -> S:
    """Let a test engine use its store through another one; before it is entered."""
    store = watched(engine._watched.inner)
    give_store(engine, store)
    return store


def wrap_inner(engine: TestEngine, wrap: Callable[[Store], T]) -> T:
    """Put a store between that of a test engine and the engine; before it is entered."""
    store: Any = wrap(engine._watched.inner)
    engine._watched.inner = store
    wrapped: T = store
    return wrapped


def give_replay_pace(engine: outlive.Engine, pace: ReplayPace) -> None:
    """Let its worker replay at another pace; before it is entered."""
    environment = engine._environment()._replace(replay_pace=pace)
    engine._environment = lambda: environment  # type: ignore[method-assign]


def clock_of(engine: outlive.Engine) -> Any:
    """Its clock."""
    return engine._clock


def worker_settings_of(engine: outlive.Engine) -> tuple[str, float, float, bool]:
    """The name of its worker, its grace, its lease, and whether its process ends when the event loop is blocked."""
    worker = engine._worker
    return engine._worker_name, worker.grace_seconds, worker.lease_seconds, bool(worker.exit_when_stalled)


def sessions_of(engine: outlive.Engine) -> WorkerSessions:
    """The sessions of its worker."""
    assert engine._parts.sessions is not None
    return engine._parts.sessions


def worker_of(engine: outlive.Engine) -> SessionWorker:
    """The worker of its present session."""
    worker = sessions_of(engine)._worker
    assert worker is not None
    return worker


def trees_of(engine: outlive.Engine) -> list[LiveTree]:
    """The trees in its memory, in motion or suspended."""
    trees = worker_of(engine).trees
    return [*trees.active(), *(live for live, _ in trees._cached.values())]


def renewal_of(engine: outlive.Engine) -> asyncio.Task[None]:
    """What begins its next session, after it has lost one."""
    renewal = sessions_of(engine)._renewal
    assert renewal is not None
    return renewal


def counters_of(engine: outlive.Engine) -> Counters:
    """What its worker counts."""
    return worker_of(engine)._counters


def session_id_of(engine: outlive.Engine) -> str:
    """The id of its present session; empty while it has none."""
    sessions = engine._parts.sessions
    return "" if sessions is None or sessions._worker is None else sessions._worker.id


def claimer_of(engine: outlive.Engine) -> Claimer:
    """The claimer of its present session."""
    claimer = sessions_of(engine)._claimer
    assert claimer is not None
    return claimer


def has_reconciled(engine: outlive.Engine) -> bool:
    """Whether its claimer has compared the trees in memory with the store since it was last asked to."""
    requests = claimer_of(engine)._requests
    return not requests.may_hold_strays and not requests.may_lack_trees


def has_stopped(claimer: Claimer) -> bool:
    """Whether it claims nothing more."""
    return claimer._task is None


def dead_session_ender_of(engine: outlive.Engine) -> DeadSessionEnder:
    """The ender of its present session."""
    return claimer_of(engine)._dead_sessions


def keeper_of(engine: outlive.Engine) -> LeaseKeeper:
    """The keeper of its lease."""
    keeper = sessions_of(engine)._keeper
    assert keeper is not None
    return keeper


def committer_of(engine: outlive.Engine) -> Committer:
    """Its committer."""
    assert engine._parts.committer is not None
    return engine._parts.committer


def executor_of(engine: outlive.Engine) -> Executor:
    """The runner of its steps."""
    return worker_of(engine)._executor


def reporter_of(engine: outlive.Engine) -> Reporter:
    """What tells other processes which of its steps are under way."""
    return worker_of(engine).reporter


def lease_of(engine: outlive.Engine) -> LeaseDeadline:
    """Until when its steps may trust that it owns its runs."""
    return executor_of(engine)._lease


def queued_in(committer: Committer) -> int:
    """How many changes wait to be committed."""
    return len(committer._queue)


def held_in(committer: Committer) -> int:
    """How many changes wait for the transaction of a step of their tree."""
    return sum(len(changes) for changes in committer._held.values())


def outcomes_waiting_in(engine: outlive.Engine) -> int:
    """How many outcomes of steps wait until changes of their run are written."""
    return sum(len(outcomes) for outcomes in worker_of(engine)._outcomes.values())


def transactions_in(committer: Committer) -> int:
    """How many transactions of steps are being committed."""
    return len(committer._transactions)


def holders_in(committer: Committer) -> int:
    """How many trees have a transaction that the others of their changes wait for."""
    return len(committer._held)


def fence(engine: outlive.Engine, reason: str = "a test says so") -> None:
    """Let its session be lost."""
    sessions_of(engine)._fence(reason)


def ring(engine: outlive.Engine) -> None:
    """Let its claimer look at the store now."""
    sessions_of(engine).ring()


def abandon_sessions(engine: outlive.Engine) -> None:
    """Let its worker be gone without a word."""
    sessions_of(engine).abandon()
    engine._parts.sessions = None


def client_of(engine: outlive.Engine) -> Client:
    """Its client."""
    assert engine._parts.client is not None
    return engine._parts.client


def hold_pages(monkeypatch: pytest.MonkeyPatch, asked: asyncio.Event, go_on: asyncio.Event) -> None:
    """Let verbs for many runs find each page but the first one when `go_on` is set; `asked` says that one is wanted."""
    page = BulkOperations._page

    async def held(self: BulkOperations, request: BulkRequest, after: str | None, found: int) -> BulkPage:
        if found:
            asked.set()
            await go_on.wait()
        return await page(self, request, after, found)

    monkeypatch.setattr(BulkOperations, "_page", held)


async def crash(engine: outlive.Engine) -> None:
    """End an engine as a kill would: nothing is released, nothing is cleaned up, its session just goes silent."""
    sessions, store = sessions_of(engine), engine._store
    worker, claimer, committer = worker_of(engine), claimer_of(engine), committer_of(engine)
    assert engine._parts.waiters is not None
    if engine._parts.services is not None:
        engine._parts.services.abandon()
        engine._parts.services = None
    tasks = [task for task in (claimer._task, committer._pump) if task is not None]
    committer.abandon()
    sessions._gate.abandon()
    worker.stop()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    sessions._stop_beating()
    worker.close()
    engine._parts.waiters.close()
    engine._resources.abandon()
    if engine._parts.describer is not None:
        engine._parts.describer.close()
    await go_silent(store, worker.id)
    await store.close()
    engine._parts.client = engine._parts.sessions = engine._parts.committer = None


async def go_silent(store: Any, worker_id: str) -> None:
    """What the others see of a dead process: the kernel dropped its lock, or its lease ran out."""
    store = getattr(store, "inner", store)
    if isinstance(store, SqliteStore) and HAS_BYTE_LOCKS:
        store._locks.close()
    elif isinstance(store, SqliteStore):
        # Not with sqlite3: a second SQLite in this process, when it closes the file, drops the locks of the first one.
        with closing(apsw.Connection(str(store._path))) as connection:
            connection.set_busy_timeout(5_000)  # A write of the store may be under way.
            connection.execute("UPDATE outlive_workers SET expires_at = ? WHERE id = ?", (store.now(), worker_id))
    elif isinstance(store, PostgresStore):
        session = await store.pools.shared.take()
        ended = "UPDATE place.workers SET expires_at = $2 WHERE id = $1"
        await session.connection.execute(ended, worker_id, store.now())
        session.connection.terminate()
    else:
        workers = store._state.workers
        workers[worker_id] = msgspec.structs.replace(workers[worker_id], expires_at=store.now())


async def describe_now(engine: outlive.Engine) -> None:
    """Let it describe its workflows and its steps now, and not a second after its start."""
    assert engine._parts.describer is not None
    await engine._parts.describer.hurry()
    await engine._parts.describer.describe_steps()


async def journal_of(thing: Any, run_id: str = "") -> list[AnyEvent]:
    """The journal of a run as it is stored: of a handle, or of an engine and an id."""
    client, run_id = (thing._client, thing.id) if isinstance(thing, StoredRun) else (thing._verbs, run_id)
    events: list[AnyEvent] = await client.journal(run_id)
    return events


async def row_of(thing: Any, run_id: str = "") -> Run:
    """The row of a run as it is stored: of a handle, or of an engine and an id."""
    client, run_id = (thing._client, thing.id) if isinstance(thing, StoredRun) else (thing._verbs, run_id)
    row: Run = await client.info(run_id)
    return row


def verbs_inside(engine: outlive.Engine) -> dict[str, Callable[[], Any]]:
    """What servers and workers ask of the namespaces of an engine, and programs do not."""
    return {
        "audit._append": lambda: engine.audit._append([Action(actor="ann", verb="export")]),
        "audit._has_done": lambda: engine.audit._has_done("request", "r-1"),
        "audit._record": lambda: engine.audit._record("export"),
        "bulk._progress": lambda: engine.bulk._progress("o-1"),
        "events._webhooks": lambda: engine.events._webhooks("/hooks/orders"),
        "flows._find": lambda: engine.flows._find("f"),
        "keys._find": lambda: engine.keys._find(new_token("olv").text),
    }


async def find_key(engine: outlive.Engine, secret: str) -> ApiKey | None:
    """The key with this secret, as a server looks for it."""
    return await engine.keys._find(secret)


async def find_flow(engine: outlive.Engine, name: str) -> FlowWorkflow:
    """A flow of the library as a workflow, as the command line looks for it."""
    return await engine.flows._find(name)


async def record_action(engine: outlive.Engine, verb: str, target: str = "") -> None:
    """Write an action into the audit log, as a server does for a verb that writes nothing else."""
    await engine.audit._record(verb, target)
