"""Sessions of workers on dictionaries. What each verb promises is written in `outlive._store.contract`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter

from msgspec.structs import replace

from outlive._store.contract import WorkerInfo
from outlive._store.memory.state import MemoryState


class MemoryBeat:
    """Renews the lease of one session."""

    def __init__(self, store: MemorySessions, worker_id: str) -> None:
        self._store, self._worker_id = store, worker_id

    def renew(self, *, lease_seconds: float) -> bool:
        """Extend the lease, unless the session has ended."""
        return self._store.extend_lease(self._worker_id, lease_seconds)

    def close(self) -> None:
        """There is nothing to let go of."""


class MemorySessions(ABC):
    """The verbs; a part of `MemoryStore`."""

    _state: MemoryState

    @abstractmethod
    def now(self) -> int:
        """See `Store`."""

    def _is_live(self, worker_id: str) -> bool:
        worker = self._state.workers.get(worker_id)
        return worker is not None and worker_id not in self._state.retired and self.now() < worker.expires_at

    def _is_lost(self, worker_id: str, stale_seconds: float) -> bool:
        """Whether its lease ended so long ago that others may have what it owns."""
        worker = self._state.workers[worker_id]
        is_stale = not stale_seconds or worker.expires_at + round(stale_seconds * 1_000_000) <= self.now()
        return is_stale and not self._is_live(worker_id)

    async def register_worker(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """Begin a session."""
        self._state.workers[worker.id] = worker
        self._state.retired.discard(worker.id)
        self.extend_lease(worker.id, lease_seconds)

    def open_beat(self, worker_id: str) -> MemoryBeat:
        """A way to renew the lease from another thread."""
        return MemoryBeat(self, worker_id)

    def extend_lease(self, worker_id: str, lease_seconds: float) -> bool:
        """Called by a beat in its own thread, so it leaves alone what `retire_worker` sets."""
        if worker_id not in self._state.workers or worker_id in self._state.retired:
            return False
        expires_at = self.now() + round(lease_seconds * 1_000_000)
        self._state.workers[worker_id] = replace(self._state.workers[worker_id], expires_at=expires_at)
        return True

    async def retire_worker(self, worker_id: str) -> None:
        """End a session; it is remembered, because it may still own trees."""
        if (worker := self._state.workers.get(worker_id)) is not None and worker_id not in self._state.retired:
            # First: a beat in its own thread extends what is not retired.
            self._state.retired.add(worker_id)
            expires_at = min(self._state.workers[worker_id].expires_at, self.now())
            self._state.workers[worker_id] = replace(worker, expires_at=expires_at)

    async def list_workers(self, *, with_runs: bool = True) -> list[WorkerInfo]:
        """The sessions that somebody may still ask for."""
        owned = Counter(tree.root.owner for tree in self._state.active.values() if with_runs)
        workers = [replace(it, is_live=self._is_live(it.id), runs=owned[it.id]) for it in self._state.workers.values()]
        return [worker for worker in workers if worker.is_live or worker.runs]
