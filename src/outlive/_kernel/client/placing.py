"""From the choice of a start to the place of its run, and the place into the first event of the run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Protocol

import msgspec

from outlive._kernel.client.acting import check_uses
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.event import RunCreated
from outlive._kernel.model import given
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.queue import (
    NOWHERE,
    SLOTS_MAX,
    Queue,
    QueueLimits,
    QueuePlace,
    check_queue,
    lead_of,
    queue_cell,
    queue_data,
    queue_in,
    queue_key,
)
from outlive._kernel.model.worker import taken_queues
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.store.contract import CellStore, Store
from outlive.errors import InvalidArgumentError
from outlive.telemetry import log

NAMES_MET_MAX = 1_000
"""How many names of queues that no code has declared are remembered."""


class QueueTable(Protocol):
    """The part of a store that a place needs."""

    async def list_queues(self) -> list[str]:
        """See `Store`."""


class QueueChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The queue, key, priority, slots and time of a start, as they were given."""

    queue: Queue | str | None = None
    """None for that of the workflow."""
    key: str | None = None
    priority: int | None = None
    delay: given.Span | None = None
    start_at: datetime | None = None
    begin_within: given.Span | None = None
    slots: int | None = None


_NOTHING = (None,) * 7


def queue_choice(
    queue: Queue | str | None = None,
    key: str | None = None,
    priority: int | None = None,
    delay: given.Span | None = None,
    start_at: datetime | None = None,
    begin_within: given.Span | None = None,
    slots: int | None = None,
) -> QueueChoice | None:
    """The queue, key, priority, slots and time of a start; None if it says nothing of them."""
    # A generator would cost a call for each.
    if (queue, key, priority, delay, start_at, begin_within, slots) == _NOTHING:
        return None
    return QueueChoice(
        queue=queue,
        key=key,
        priority=priority,
        delay=delay,
        start_at=start_at,
        begin_within=begin_within,
        slots=slots,
    )


def put(event: RunCreated, place: QueuePlace) -> RunCreated:
    """The first event of a run that has this place."""
    if place == NOWHERE:
        return event
    return msgspec.structs.replace(
        beginning_at(event, place.start_at) if place.start_at else event,
        queue=place.queue,
        queue_key=place.queue_key,
        lead=place.lead,
        frees_slot=place.frees_slot,
        begin_by=place.begin_by,
        slots=place.slots,
    )


def beginning_at(event: RunCreated, start_at: int) -> RunCreated:
    """The first event of a run that is to begin then; its time limits count from there."""
    later, timeout_at = start_at - (event.start_at or event.at), event.timeout_at
    return msgspec.structs.replace(
        event,
        start_at=start_at,
        timeout_at=None if timeout_at is None else timeout_at + later,
        begin_by=event.begin_by and event.begin_by + later,
    )


def own_place(spec: WorkflowSpec) -> QueuePlace:
    """The place of a run that is started without saying one."""
    queue = spec.queue
    if queue is None:
        return NOWHERE
    if isinstance(queue, Queue):
        return QueuePlace(queue=queue.name, frees_slot=queue.hold == "running")
    return QueuePlace(queue=queue)


async def warn_of_unknown(store: QueueTable, names: Sequence[str], specs: list[WorkflowSpec]) -> None:
    """Say which of the queues that a worker takes from no one knows: they may come later, or be misspelt."""
    own = {spec.queue.name if isinstance(spec.queue, Queue) else spec.queue for spec in specs if spec.queue}
    left = [name for name in names if name and name not in own]
    known = {*own, *await store.list_queues()} if left else own
    for name in (name for name in left if name not in known):
        close = get_close_matches(name, sorted(known), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "it may come later"
        log.warning("this worker takes from queue %r, which neither its code nor the store knows; %s", name, hint)


async def undeclared_queue(store: Store, name: str, specs: list[WorkflowSpec]) -> str:
    """A clause that says that no code has declared a queue, and which one may be meant; empty if these workflows have
    declared it, or a worker, or a person at run time."""
    own, record = declared_queues(specs), queue_in(await store.read_cell(queue_cell(name)))
    if not name or name in own or record.declared_at or record.changed:
        return ""
    others = {*await store.list_queues(), *own} - {name}
    close = get_close_matches(name, sorted(others), n=1)
    return f"no code has declared queue {name!r}{f'; did you mean {close[0]!r}?' if close else ''}"


class Placer:
    """Finds the places of new runs, and lets the store know the queues that starts bring along."""

    def __init__(self, store: Store, *, registry: Registry, began_at: int) -> None:
        self._store, self._registry, self._began_at = store, registry, began_at
        self._declared: dict[str, QueueLimits] = {}
        self._met: set[str] = set()
        """Queues that were given by name, and that a worker takes from or a warning was logged of."""

    async def place(self, where: str, choice: QueueChoice, own: Queue | str | None, *, now_at: int) -> QueuePlace:
        """The place of a run of a workflow with the queue `own`.

        Raises:
            InvalidArgumentError: the queue takes no such key or priority, or has fewer slots, or nothing can begin
                then.
            ArgumentTypeError: something is of another type.
            QueueRefusedError: the principal may use the queue of the workflow only.
        """
        queue = check_queue(where, choice.queue)
        if queue is None:
            queue = own
        else:
            check_uses(_name(queue), _name(own))
        start_at = _start_at(where, choice, now_at)
        begin_by = 0
        if choice.begin_within is not None:
            seconds = given.seconds(where, "begin_within", choice.begin_within)
            begin_by = (start_at or now_at) + round(seconds * MICROSECONDS)
        if not queue:
            for name, value in (("key", choice.key), ("priority", choice.priority), ("slots", choice.slots)):
                if value is not None:
                    raise InvalidArgumentError(where, name, value, "it is for runs with a queue: give a queue too")
            return QueuePlace(start_at, begin_by=begin_by) if start_at or begin_by else NOWHERE
        name, limits = await self._find(queue, choice.priority)
        return QueuePlace(
            start_at=start_at,
            queue=name,
            queue_key="" if choice.key is None else queue_key(where, choice.key),
            lead=lead_of(where, name, limits, choice.priority),
            frees_slot=limits.hold == "running",
            begin_by=begin_by,
            slots=1 if choice.slots is None else await self._slots(where, name, choice.slots),
        )

    async def _slots(self, where: str, name: str, wanted: object) -> int:
        """A number of slots that a run of this queue can get."""
        slots = given.whole(where, "slots", wanted, most=SLOTS_MAX)
        most = queue_in(await self._store.read_cell(queue_cell(name))).limits.slots_max
        if slots > most:
            wanted = f"queue {name} has at most {most:,} for a run: give fewer, or let the queue have more"
            raise InvalidArgumentError(where, "slots", slots, wanted)
        return slots

    async def _find(self, queue: Queue | str, priority: object) -> tuple[str, QueueLimits]:
        """The name of a queue and what is declared of it."""
        if isinstance(queue, Queue):
            known = self._declared.get(queue.name)
            if known is not queue._limits and known != queue._limits:
                await declare(self._store, queue.name, queue._limits, at=self._began_at)
                self._declared[queue.name] = queue._limits
            return queue.name, queue._limits
        record = queue_in(await self._store.read_cell(queue_cell(queue)))
        if not record.declared_at and queue not in self._met and len(self._met) < NAMES_MET_MAX:
            await self._meet(queue)
        return queue, record.declared

    async def _meet(self, name: str) -> None:
        """Log once that no worker takes from a queue which no code has declared: its name may be misspelt."""
        workers = [worker for worker in await self._store.list_workers(with_runs=False) if worker.is_live]
        if not workers:
            return
        self._met.add(name)
        takes = [taken_queues(worker.definitions) for worker in workers]
        if any(queues is None or name in queues for queues in takes):
            return
        if clause := await undeclared_queue(self._store, name, self._registry.workflows()):
            log.warning("a run is started in queue %r, from which no live worker takes; %s", name, clause)


def _name(queue: Queue | str | None) -> str:
    return queue.name if isinstance(queue, Queue) else queue or ""


async def declare(store: CellStore, name: str, limits: QueueLimits, *, at: int) -> None:
    """Let all workers know the limits of a queue as the code has them of a process that began then. What was set at run
    time stays, and so does what the code of a later process says."""

    def change(data: bytes | None, now_at: int) -> tuple[bytes, None]:
        record = queue_in(data)
        declared = record.declaring(limits, at=at)
        return data if declared is record and data is not None else queue_data(declared), None

    await store.change_cell(queue_cell(name), change)


def _start_at(where: str, choice: QueueChoice, now_at: int) -> int:
    if choice.delay is not None and choice.start_at is not None:
        raise InvalidArgumentError(where, "delay", choice.delay, "give a delay or an instant to start at, not both")
    at = now_at
    if choice.delay is not None:
        at += round(given.seconds(where, "delay", choice.delay, or_zero=True) * MICROSECONDS)
    if choice.start_at is not None:
        at = round(given.instant(where, "start_at", choice.start_at).timestamp() * MICROSECONDS)
    return at if at > now_at else 0


def declared_queues(specs: list[WorkflowSpec]) -> dict[str, QueueLimits]:
    """The limits of the queues that these workflows bring along, by name.

    Raises:
        InvalidArgumentError: one is declared twice, and not in the same way.
    """
    found: dict[str, QueueLimits] = {}
    for spec in specs:
        if isinstance(spec.queue, Queue):
            limits = spec.queue._limits
            if found.setdefault(spec.queue.name, limits) != limits:
                wanted = (
                    f"queue {spec.queue.name} has other limits in another workflow: declare it once, and use it in both"
                )
                raise InvalidArgumentError(f"workflow {spec.name}", "queue", spec.queue, wanted)
    return found
