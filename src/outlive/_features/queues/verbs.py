"""`engine.queues`: what people do with queues, and how full they are."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

import msgspec

from outlive._kernel.client.acting import doing
from outlive._kernel.client.bulk import BulkFilters
from outlive._kernel.client.client import Client
from outlive._kernel.client.finding import COUNT_MAX
from outlive._kernel.client.placing import declared_queues
from outlive._kernel.model import Run, given
from outlive._kernel.model.pause import Pause
from outlive._kernel.model.queue import (
    Queue,
    QueueLimits,
    QueueRecord,
    check_queue,
    checked_limits,
    queue_cell,
    queue_data,
    queue_in,
    queue_name,
)
from outlive._kernel.store.contract import KEY_RUNS_MAX, WorkerInfo
from outlive._kernel.values.count import Count
from outlive._kernel.values.queue import Holder, QueueState, WaitingKey, limits_of
from outlive.errors import InvalidArgumentError
from outlive.errors.run import QueueNotFoundError

CHANGEABLE = ("concurrency", "per_worker", "per_key", "rate", "weights")
"""The limits that can be set at run time; all others are part of the code that starts runs."""


class Queues:
    """The queues in the store of an engine."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._access = client.access

    async def list(self) -> builtins.list[QueueState]:
        """Every queue that has runs, that was changed, or that the code of this process declares; by name."""
        names = {*await self._access.store.list_queues(), *self._own()}
        return [await self._info(name) for name in sorted(names)]

    async def stats(self, queue: Queue | str) -> QueueState:
        """How full a queue is, who holds its slots, and what it allows.

        Raises:
            QueueNotFoundError: neither runs nor code nor `set` have named it.
        """
        return await self._info(await self._known("engine.queues.stats", queue))

    async def _info(self, name: str) -> QueueState:
        store = self._access.store
        record = queue_in(await store.read_cell(queue_cell(name)))
        limits = record.limits
        if not record.declared_at and name in self._own():
            # No worker has claimed from it yet: it will write what its code declares then.
            limits = msgspec.structs.replace(record, declared=self._own()[name]).limits
        measure, now_at = await store.measure_queue(name, limit=COUNT_MAX + 1), store.now()
        workers = {worker.id: worker for worker in await store.list_workers(with_runs=False)}
        return QueueState(
            name=name,
            limits=limits_of(limits),
            changed=tuple(sorted(record.changed)),
            paused="" if record.paused is None else str(record.paused),
            in_line=_counted(measure.in_line),
            running=_counted(measure.held),
            slots=Count(measure.slots, at_least=measure.held > COUNT_MAX),
            later=_counted(measure.later),
            waiting=None if measure.oldest_at is None else _since(measure.oldest_at, now_at),
            holders=tuple(_holder(run, workers) for run in measure.holders),
            keys=tuple(
                WaitingKey(it.key, _counted(it.in_line, KEY_RUNS_MAX - 1), _since(it.oldest_at, now_at))
                for it in measure.keys
            ),
        )

    async def set(self, queue: Queue | str, **limits: Any) -> None:
        """Change limits of a queue, for all workers and until `reset`; None for no limit.

        Args:
            limits: `concurrency`, `per_worker`, `per_key`, `rate`, `weights`, as for `Queue`.

        Raises:
            InvalidArgumentError: there is no such limit, or it cannot be.
        """
        where = "engine.queues.set"
        name, checked = _name(where, queue), changeable_limits(where, limits)
        with doing("queue.set", name):
            await self._change(
                name, lambda record, _: msgspec.structs.replace(record, changed=record.changed | checked)
            )

    async def reset(self, queue: Queue | str) -> None:
        """Let the limits count again that code declares.

        Raises:
            QueueNotFoundError: neither runs nor code nor `set` have named it.
        """
        name = await self._known("engine.queues.reset", queue)
        with doing("queue.reset", name):
            await self._change(name, lambda record, _: msgspec.structs.replace(record, changed={}))

    async def pause(self, queue: Queue | str, *, by: str = "", reason: str = "") -> None:
        """Give no more slots; runs that hold one go on, and new ones may be started. Durable when this returns.

        Raises:
            QueueNotFoundError: neither runs nor code nor `set` have named it.
        """
        where = "engine.queues.pause"
        name, who = await self._known(where, queue), given.text(where, "by", by, like="ops", least=0)
        why = given.text(where, "reason", reason, like="the mail server is down", least=0)

        def pause(record: QueueRecord, now_at: int) -> QueueRecord:
            return (
                record if record.paused is not None else msgspec.structs.replace(record, paused=Pause(now_at, who, why))
            )

        with doing("queue.pause", name, why):
            await self._change(name, pause)

    async def resume(self, queue: Queue | str) -> None:
        """Give slots again.

        Raises:
            QueueNotFoundError: neither runs nor code nor `set` have named it.
        """
        name = await self._known("engine.queues.resume", queue)
        with doing("queue.resume", name):
            await self._change(name, lambda record, _: msgspec.structs.replace(record, paused=None))

    async def drain(self, queue: Queue | str, *, by: str = "", reason: str = "draining") -> None:
        """Pause a queue, and return when no run holds a slot of it. It stays paused until `resume`."""
        name = await self._known("engine.queues.drain", queue)
        await self.pause(name, by=by, reason=reason)
        pause = self._client.new_pause()
        while (await self._access.store.measure_queue(name, limit=1)).held:
            await pause()

    async def _known(self, where: str, queue: Queue | str) -> str:
        """The name of an existing queue; raises for a misspelt one, which would else be paused without any effect."""
        name, store = _name(where, queue), self._access.store
        if isinstance(queue, Queue) or name in self._own() or await store.read_cell(queue_cell(name)) is not None:
            return name
        names = {*await store.list_queues(), *self._own()}
        if name not in names:
            raise QueueNotFoundError(name, next(iter(get_close_matches(name, sorted(names), n=1)), ""))
        return name

    async def _change(self, name: str, change: Any) -> None:
        def write(data: bytes | None, now_at: int) -> tuple[bytes, None]:
            return queue_data(change(queue_in(data), now_at)), None

        await self._access.store.change_cell(queue_cell(name), write)
        self._access.ring()

    def _own(self) -> dict[str, QueueLimits]:
        return declared_queues(self._access.registry.workflows())


def _name(where: str, queue: object) -> str:
    checked = check_queue(where, queue)
    if isinstance(checked, Queue):
        return checked.name
    return checked or queue_name(where, "queue", queue)


def changeable_limits(where: str, limits: Mapping[str, Any]) -> dict[str, Any]:
    """Limits to set at run time, as plain data.

    Raises:
        InvalidArgumentError: there is none, there is no such limit, or it cannot be.
        ArgumentTypeError: one of them is of another type.
    """
    if not limits:
        raise InvalidArgumentError(where, "limits", None, f"give one of {', '.join(CHANGEABLE)}")
    for limit, value in limits.items():
        if limit not in CHANGEABLE:
            wanted = f"it can be set at run time for {', '.join(CHANGEABLE)}; the rest is declared in code"
            raise InvalidArgumentError(where, limit, value, wanted)
    plain: dict[str, Any] = msgspec.to_builtins(checked_limits(where, limits))
    return plain


def _counted(number: int, most: int = COUNT_MAX) -> Count:
    return Count(min(number, most), at_least=number > most)


def _since(instant: int, now_at: int) -> timedelta:
    return timedelta(microseconds=max(0, now_at - instant))


def _holder(run: Run, workers: dict[str, WorkerInfo]) -> Holder:
    worker = workers.get(run.owner)
    return Holder(run.id, run.queue_key, run.status.value, run.owner if worker is None else worker.name, run.slots)


def only_queue(run_id: str | None, workflow: str | None, filters: BulkFilters) -> str | None:
    """The name of the queue that a verb is for as a whole; None if it is for runs."""
    if run_id is not None or workflow is not None or set(filters) != {"queue"}:
        return None
    return filters["queue"]
