"""Sessions whose life etcd judges. What they own is the store's and the journal's business, as with every kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Protocol, TypeVar

import msgspec

from outlive._kernel.lease.etcd import keys
from outlive._kernel.lease.etcd.address import EtcdAddress
from outlive._kernel.lease.etcd.beat import EtcdBeat, backstop_of
from outlive._kernel.lease.etcd.gateway import Gateway
from outlive._kernel.lease.etcd.watch import EtcdWatch
from outlive._kernel.lease.process import is_gone
from outlive._kernel.lease.sessions import StoreLeases
from outlive._kernel.store.contract import Beat, Store, WorkerInfo
from outlive.errors import StoreUnavailableError
from outlive.telemetry import log

ASK_SECONDS = 3.0
"""How long a request may take, over all endpoints."""
HINT_SECONDS = 1.0
"""How long a request may take whose answer only saves time: a key that stays runs out, and dead workers are found
later."""
AWAY_SECONDS = 5.0
"""How long an etcd that does not answer is not asked who is alive: the worker has runs to claim meanwhile."""

P = ParamSpec("P")
T = TypeVar("T")


class Means(Protocol):
    """Where time, chance and threads come from; the engine's clock."""

    def monotonic(self) -> float:
        """Seconds that only go forward."""

    def random(self) -> float:
        """A number in [0, 1)."""

    def nonce(self) -> int:
        """63 random bits."""

    def spawn(self, target: Callable[[], None], *, name: str) -> None:
        """Run something on a thread of its own that never keeps the process alive."""


class EtcdLeases(StoreLeases):
    """See `Leases`."""

    def __init__(self, store: Store, address: EtcdAddress, *, clock: Means) -> None:
        super().__init__(store)
        self._clock = clock
        self._address = address
        self._gateway = self._new_gateway()
        self._thread: ThreadPoolExecutor | None = None
        self._id = ""
        self._leases: dict[str, int] = {}
        self._watch: EtcdWatch | None = None
        self._away_until: float | None = None

    @property
    def name(self) -> str:
        """By what a session's row says that it is kept here."""
        return f"etcd:{self._address.prefix}/{self._id}"

    async def open(self) -> None:
        """See `Leases`."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "outlive-etcd")
        await self._identify()

    async def close(self) -> None:
        """See `Leases`."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        thread, self._thread = self._thread, None
        if thread is not None:
            closing = asyncio.get_running_loop().run_in_executor(thread, self._gateway.close)
            # An etcd that does not answer keeps the thread for longer; it closes the line when it is free.
            await asyncio.wait([closing], timeout=HINT_SECONDS)
            thread.shutdown(wait=False)

    # -- Sessions --------------------------------------------------------------------------------------------

    async def register(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """See `Leases`. The key is there before the row, so that a row without a key always means a lease that has
        ended."""
        lease = await self._enlist(worker.id, lease_seconds)
        if lease is None:
            # Its data were lost, and its prefix has another id now.
            await self._identify()
            lease = await self._enlist(worker.id, lease_seconds)
        if lease is None:
            raise StoreUnavailableError(
                str(self._address), "its id changes all the time; does another program delete its keys?"
            )
        worker = msgspec.structs.replace(worker, lease=self.name)
        await super().register(worker, lease_seconds=backstop_of(lease_seconds))
        # All this may have taken long. From here on the session is counted on, so its lease begins here.
        if not await self._do(keys.keep_alive, self._gateway, lease, seconds=ASK_SECONDS):
            await super().end_session(worker.id)
            raise StoreUnavailableError(str(self._address), "the lease ran out while the session began")
        self._leases[worker.id] = lease

    def open_beat(self, worker_id: str) -> Beat:
        """See `Leases`."""
        return EtcdBeat(
            self._new_gateway(),
            super().open_beat(worker_id),
            self._leases.get(worker_id),
            monotonic=self._clock.monotonic,
        )

    async def end_session(self, worker_id: str) -> None:
        """See `Leases`. In the store first, where it counts; then its key, so that its keeper hears of it."""
        await super().end_session(worker_id)
        is_ours = self._leases.pop(worker_id, None) is not None
        try:
            await self._do(keys.dismiss, self._gateway, worker_id, seconds=HINT_SECONDS)
        except StoreUnavailableError as error:
            if is_ours:
                log.info("the key of worker %s stays until its lease has run out (%s)", worker_id, error)

    async def find_lost(self, worker_id: str) -> list[WorkerInfo]:
        """See `Leases`. While etcd is away only those are found whose process is seen to be gone."""
        others = [it for it in await self._store.list_workers(with_runs=False) if it.id != worker_id]
        kept_here = {it.id for it in others if it.lease == self.name}
        # Read after the rows: a session that had a row by then had a key before.
        alive = await self._list_alive() if kept_here else None
        dead = kept_here - alive if alive is not None else set()
        return [worker for worker in others if worker.id in dead or is_gone(worker.process)]

    def watch(self, ring: Callable[[], None]) -> None:
        """See `Leases`."""
        if self._watch is None:
            self._watch = EtcdWatch(self._new_gateway(), ring, random=self._clock.random)
            self._clock.spawn(self._watch.run, name="outlive-etcd-watch")
        else:
            self._watch.ring = ring

    # -- etcd ------------------------------------------------------------------------------------------------

    async def _identify(self) -> None:
        self._id = await self._do(keys.identify, self._gateway, f"{self._clock.nonce():016x}", seconds=ASK_SECONDS)

    async def _enlist(self, worker_id: str, lease_seconds: float) -> int | None:
        return await self._do(
            keys.enlist, self._gateway, self._id, worker_id, lease_seconds=lease_seconds, seconds=ASK_SECONDS
        )

    async def _list_alive(self) -> set[str] | None:
        """The workers that have a key; None while etcd cannot be asked."""
        if self._away_until is not None and self._clock.monotonic() < self._away_until:
            return None
        try:
            alive = await self._do(keys.list_alive, self._gateway, self._id, seconds=HINT_SECONDS)
        except StoreUnavailableError as error:
            if self._away_until is None:
                log.warning("it is unknown which workers are alive (%s); dead ones are noticed later", error)
            self._away_until = self._clock.monotonic() + AWAY_SECONDS
            return None
        self._away_until = None
        return alive

    def _new_gateway(self) -> Gateway:
        # Not every worker begins with the first: members share the work, and one that stands still holds up few.
        turn = int(self._clock.random() * len(self._address.endpoints))
        return Gateway(self._address, monotonic=self._clock.monotonic, turn=turn)

    async def _do(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask on our own thread: the shared pool may be full of a user's work."""
        if self._thread is None:
            raise StoreUnavailableError(str(self._address), "it is not open")
        return await asyncio.wrap_future(self._thread.submit(verb, *args, **kwargs))
