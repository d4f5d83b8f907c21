"""The words in which the tests of leases in etcd are written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from outlive._kernel.lease.contract import Leases
from outlive._kernel.lease.etcd import EtcdLeases
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Beat, Store, WorkerInfo
from outlive.errors import StoreUnavailableError
from outlive_conformance.suite.builders import DEFINITION

PATIENCE_SECONDS = 30.0
"""How long a test waits for what must happen; only a failing test waits that long."""
HEARING_SECONDS = 15.0
"""The same for a bell; shorter than the silence after which a watch begins again, and rings whether it heard or not."""
SHORT_SECONDS = 1.0
"""The shortest lease that etcd grants here."""
LOOK_SECONDS = 0.05


class Bell:
    """Something that is rung."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self.count = 0

    def ring(self) -> None:
        """Ring."""
        self.count += 1
        self._rung.set()

    async def wait(self) -> None:
        """Wait until it rings, and be ready for the next time."""
        async with asyncio.timeout(HEARING_SECONDS):
            await self._rung.wait()
        self._rung.clear()


class JumpingClock(SystemClock):
    """Real time, and now and then a jump forward."""

    def __init__(self) -> None:
        super().__init__()
        self._jumped = 0.0

    def monotonic(self) -> float:
        """The time, with all jumps."""
        return super().monotonic() + self._jumped

    def jump(self, seconds: float) -> None:
        """Jump forward."""
        self._jumped += seconds


async def enlist(leases: Leases, worker_id: str, *, lease_seconds: float = PATIENCE_SECONDS, process: str = "") -> None:
    """Begin a session."""
    worker = WorkerInfo(
        id=worker_id, name=worker_id, definitions=(DEFINITION,), started_at=0, expires_at=0, process=process
    )
    await leases.register(worker, lease_seconds=lease_seconds)


async def lost(leases: Leases, worker_id: str = "watcher") -> list[str]:
    """Who has certainly died."""
    return [worker.id for worker in await leases.find_lost(worker_id)]


async def insist(verb: Callable[[], bool]) -> bool:
    """Do this until the cluster is there to answer, on a thread as a keeper does."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await asyncio.to_thread(verb)
            except StoreUnavailableError:
                await asyncio.sleep(LOOK_SECONDS)


async def renew(beat: Beat, *, lease_seconds: float = PATIENCE_SECONDS) -> bool:
    """Renew as soon as the cluster answers."""
    return await insist(lambda: beat.renew(lease_seconds=lease_seconds))


async def claim(store: Store, worker_id: str) -> list[str]:
    """Take over what is due."""
    claims = await store.claim_runs(worker_id, [DEFINITION], limit=10)
    return [claim.run.id for claim in claims.claims]


async def take_over_the_lost(leases: EtcdLeases, worker_id: str) -> list[str]:
    """End the sessions that have died, as the dead session ender does; who they were."""
    found = await lost(leases, worker_id)
    for each in found:
        await leases.end_session(each)
    return found
