"""The store of an engine that runs, for code that may use it: on the engine's own event loop, in its own process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import Protocol, cast

from outlive._kernel.client.acting import ACTING, AuditedStore
from outlive._kernel.client.admission import Admission, Unlimited
from outlive._kernel.client.lookups import Lookups
from outlive._kernel.client.timed_store import TimedStore
from outlive._kernel.define.middleware import NO_HOOKS, Hooks
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.codec import open_journal
from outlive._kernel.journal.event import AnyEvent, RunCreated
from outlive._kernel.journal.packing import Packer
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Payload, Run, known_run_id
from outlive._kernel.model.pause import Pauses
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.under_way import Report
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.store.contract import Action, Outcome, Store
from outlive.errors import EngineClosedError, RunNotFoundError
from outlive.errors.program import EngineForkedError, NotDurableError, OtherLoopError

STORE_WAIT_SECONDS = 10.0
"""How long a verb waits for a store that does not answer, unless an engine says otherwise."""
CommitAnswer = Callable[[Outcome, int], None]
"""Given the outcome of a change and the handle of its journal."""


class OwnWorker(Protocol):
    """The worker of the engine that a client belongs to."""

    def begin(
        self, run_id: str, event: RunCreated, blobs: list[Blob], answer: CommitAnswer, audit: Action | None = None
    ) -> bool:
        """Create and own a tree, if it can run it and has room."""

    def moves(self, run_id: str) -> bool:
        """Whether a root run is in motion there and its end will be announced."""

    def under_way(self, run_id: str) -> Report | None:
        """The work under way in the tree of a root run that moves there; None if it does not move there."""

    def discard_tree(self, journal: int) -> None:
        """A client has ended a tree: stop what runs of it there."""

    @property
    def pauses(self) -> Pauses:
        """The workflows that are paused, as far as the worker knows."""

    def set_pauses(self, pauses: Pauses) -> None:
        """A client has paused workflows, or let them go on."""

    def ring(self) -> None:
        """Something may be due."""


class Access:
    """The parts with which every verb of a client begins."""

    def __init__(
        self,
        store: Store,
        *,
        packer: Packer,
        registry: Registry,
        worker: OwnWorker | None,
        hooks: Hooks = NO_HOOKS,
        admission: Admission | None = None,
        store_seconds: float = STORE_WAIT_SECONDS,
    ) -> None:
        self._store: Store | None = store
        self.store_seconds = store_seconds
        """How long a verb waits for a store that does not answer."""
        timed_store = TimedStore(store, seconds=store_seconds)
        self._end_searches = timed_store.end_searches
        self._timed = timed = cast(Store, timed_store)
        self.admission: Admission = admission or Unlimited()
        """Asked by every verb that starts runs."""
        self.find = Lookups(timed).find
        """The run of an id, if there is one; callers that ask at the same time ask together."""
        self._looking = 0
        self.worker = worker
        self._process = os.getpid()
        self._loop = asyncio.get_running_loop()
        self.packer = packer
        self.registry = registry
        self.hooks = hooks

    @property
    def store(self) -> Store:
        """The store; raises if the engine has stopped, or is another process's or another loop's. While a principal
        acts, what is written to it is in the audit log."""
        if self._store is None:
            raise EngineClosedError("this")
        if self._process != os.getpid():
            raise EngineForkedError(self._process, os.getpid())
        if asyncio._get_running_loop() is not self._loop:  # Looked at here: three times for each run that is started.
            check_loop(self._loop)
        return self._timed if ACTING.get() is None else cast(Store, AuditedStore(self._timed))

    @property
    def timed_store(self) -> Store:
        """The store for what a caller waits for, whichever principal acts."""
        if self._store is None:
            raise EngineClosedError("this")
        return self._timed

    @property
    def own_store(self) -> Store:
        """The store for the engine's own writes, whichever principal acts."""
        if self._store is None:
            raise EngineClosedError("this")
        return self._store

    def close(self) -> None:
        """The engine has stopped: from now on every use of its store is refused, and a handle keeps nothing of it."""
        self._store = self.worker = None
        self._end_searches()
        self.find = _find_nothing

    def ring(self) -> None:
        """Let our worker look at the store soon, if there is one."""
        if self.worker is not None:
            self.worker.ring()

    async def info(self, run_id: str) -> Run:
        """The run as its row says it.

        Raises:
            RunNotFoundError: no run has this id.
        """
        store, run_id = self.store, known_run_id("engine", run_id)
        self._looking += 1
        try:
            run = await (store.find_run(run_id) if self._looking == 1 else self.find(run_id))
        finally:
            self._looking -= 1
        if run is None:
            raise RunNotFoundError(run_id)
        return run

    async def root_of(self, run: Run) -> Run:
        """The root of the tree that a run belongs to."""
        return run if run.number == 0 else await self.info(run.root_id)

    async def events(self, run: Run) -> list[AnyEvent]:
        """The journal of the tree that a run belongs to, verified."""
        return open_journal(await self.store.read_journal(run.journal), nonce=run.nonce, run_id=run.root_id)

    async def blobs(self, payloads: Iterable[Payload | None]) -> dict[str, bytes]:
        """The blobs of these payloads that are stored apart."""
        ids = sorted({payload.blob for payload in payloads if payload is not None and payload.blob})
        return await self.store.get_blobs(ids) if ids else {}

    async def unpack(self, payload: Payload, *, owners: tuple[str, ...] = ()) -> Stored:
        """The bytes of a payload, wherever they are kept."""
        blobs = await self.blobs([payload]) if payload.blob else {}
        return self.packer.unpack(payload, blobs, owners=owners)


def _find_nothing(run_id: str) -> asyncio.Future[Run | None]:
    raise EngineClosedError("this")


def check_loop(own: asyncio.AbstractEventLoop) -> None:
    """See that this is called on the loop that something belongs to: futures, tasks and answers of a store come there.

    Raises:
        NotDurableError: it is called in a workflow, whose loop is another one by nature.
        OtherLoopError: it is called on any other loop, or on none.
    """
    running = asyncio._get_running_loop()
    if running is own:
        return
    if current_execution() is not None:
        raise NotDurableError("an engine's verb")
    if own.is_closed():
        raise OtherLoopError("after that loop was closed without leaving the engine")
    raise OtherLoopError("where no event loop runs" if running is None else "on another one")
