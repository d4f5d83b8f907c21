"""One sentence for a run in line: its position, and who holds the slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from outlive._kernel.model import Run
from outlive._kernel.model.bounds import UNBOUND, Bounds
from outlive._kernel.model.queue import QueueRecord, queue_cell, queue_in
from outlive._kernel.model.remote import remote_step_of
from outlive._kernel.model.run import IN_LINE
from outlive._kernel.model.why import Why
from outlive._kernel.store.contract import QueueMeasure, Store
from outlive._kernel.values.count import Count
from outlive.errors.advice import Advice

AHEAD_MAX = 1_000
"""How far the position of a run in its line is counted."""
SHOWN_MAX = 3


async def why_in_line(store: Store, root: Run, *, who: str = "it", bounds: Bounds = UNBOUND) -> str:
    """Why a run has no slot, for a person, who knows it as `who`; empty if it is not in line.

    Of other runs those within the `bounds` are named.
    """
    if root.slot != IN_LINE:
        return ""
    measure = await store.measure_queue(root.queue, limit=AHEAD_MAX, run_id=root.id)
    return _sentence(who, root, queue_in(await store.read_cell(queue_cell(root.queue))), measure, bounds)


async def why_others_in_line(store: Store, others: Iterable[Run], *, bounds: Bounds = UNBOUND) -> str:
    """The reason why the first of these runs that is in line waits."""
    waiting = next((run for run in others if run.slot == IN_LINE and not remote_step_of(run.workflow)), None)
    return "" if waiting is None else await why_in_line(store, waiting, who=f"run {waiting.id}", bounds=bounds)


def _sentence(who: str, root: Run, record: QueueRecord, measure: QueueMeasure, bounds: Bounds) -> str:
    position = Count(measure.ahead, at_least=True) if measure.ahead >= AHEAD_MAX else Count(measure.ahead + 1)
    whose = f" of key {root.queue_key!r}" if root.queue_key else ""
    text = f"{who} is in line in queue {root.queue}, in place {position}{whose}"
    if record.paused is not None:
        advice = Advice("queues.resume", {"queue": root.queue}, "lets it go on")
        return Why(f"{text}; the queue is {record.paused}", advice)
    limits, takes = record.limits, f"it takes {root.slots:,} slots"
    if root.slots > limits.slots_max:
        text = f"{text}; {takes}, and the queue has at most {limits.slots_max:,} for a run: it can never begin"
        if limits.concurrency is None or limits.concurrency >= root.slots:
            return f"{text} unless its limit per_worker is raised"
        advice = Advice("queues.set", {"queue": root.queue, "concurrency": root.slots}, "lets it begin")
        return Why(text, advice)
    if limits.concurrency is not None and measure.slots + root.slots > limits.concurrency:
        named, free = _named(measure.holders, measure.held, bounds), max(0, limits.concurrency - measure.slots)
        if free:
            return f"{text}; {takes}, and {free:,} of {limits.concurrency:,} are free{named}"
        return f"{text}; {_all(limits.concurrency)} taken{named}"
    own = [run for run in measure.holders if run.queue_key == root.queue_key]
    if root.queue_key and limits.per_key is not None and len(own) >= limits.per_key:
        named = _named(own, len(own), bounds)
        return f"{text}; {_all(limits.per_key)} taken that its key may have{named}"
    return f"{text}; a worker will take it when it is its turn"


def _all(slots: int) -> str:
    return "the only slot is" if slots == 1 else f"all {slots:,} slots are"


def _named(holders: Sequence[Run], count: int, bounds: Bounds) -> str:
    """Some of the runs that hold slots, of so many; a child is named only to one who may see all."""
    shown = [run.id for run in holders if bounds.is_open or (not run.number and bounds.allow(run))]
    more = [f"{count - len(shown[:SHOWN_MAX]):,} more"] if count > len(shown[:SHOWN_MAX]) else []
    return f": {', '.join([*shown[:SHOWN_MAX], *more])}" if shown else ""
