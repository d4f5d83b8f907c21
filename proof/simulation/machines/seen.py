"""Which situations a machine was in that make a simulation worth running; `sometimes` has all of them."""

from __future__ import annotations

from collections import Counter

from outlive._kernel.journal.event import (
    CancelRequested,
    RunClaimed,
    RunParked,
    SnapshotTaken,
    StepDelayed,
    StepSucceeded,
)
from outlive._kernel.model import RunStatus
from outlive.errors.step import UNDO_FAILED
from proof.simulation.book import Book
from proof.simulation.machines.effects import Deeds
from proof.simulation.machines.legs import Legs, each_leg

TAKEN_OVER = {
    "split": "split interrupted",
    "any": "split interrupted",
    "quorum": "split interrupted",
    "part": "split interrupted",
    "batch": "batch interrupted",
    "stepped": "cursor went on in another process",
    "poll": "poll went on in another process",
    "loop": "loop went on in another process",
    "ask": "workflow state went on in another process",
    "limited": "limited state went on in another process",
}
"""Legs of which parts were begun by several workers."""


def see(seen: Counter[str], legs: Legs, book: Book, deeds: Deeds) -> None:
    """Count what one machine went through."""
    status = book.fold.root.status
    seen[f"machine {status.value.replace('_', ' ')}"] += 1
    if deeds.undone:
        is_kept = status is RunStatus.SUCCEEDED
        seen["branch that came too late undone" if is_kept else "machine rolled back"] += 1
    if len({tried.epoch for tried in deeds.begun if tried.is_undo}) > 1:
        seen["roll-back interrupted"] += 1
    kinds = {leg[1]: leg[0] for leg in each_leg(legs)}
    epochs: dict[str, set[int]] = {}
    for tried in deeds.begun:
        if not tried.is_undo:
            epochs.setdefault(tried.name.partition("/")[0], set()).add(tried.epoch)
    for tag, by in epochs.items():
        if len(by) > 1 and kinds[tag] in TAKEN_OVER:
            seen[TAKEN_OVER[kinds[tag]]] += 1
    _see_journal(seen, book, deeds)


def _see_journal(seen: Counter[str], book: Book, deeds: Deeds) -> None:
    base = 0
    is_undoing = False
    done_at: dict[str, int] = {}
    for seq, event in enumerate(book.events):
        if isinstance(event, SnapshotTaken):
            base = seq
            seen["signal kept in a snapshot"] += bool(event.signals)
            seen["snapshot owes undos"] += bool(done_at)
        elif isinstance(event, RunClaimed):
            seen["worker lost behind a snapshot"] += event.interrupted and base > 0
            seen["worker lost right behind a snapshot"] += event.interrupted and base == seq - 1 > 0
        elif isinstance(event, CancelRequested):
            seen["cancel in the middle of a roll-back"] += is_undoing
        elif isinstance(event, RunParked):
            seen["undo failed and parked its machine"] += event.reason.startswith(UNDO_FAILED)
        elif isinstance(event, StepDelayed):
            seen["waited for a limit in the journal" if event.has_turn else "waited for a breaker in the journal"] += 1
        elif isinstance(event, StepSucceeded):
            tried = deeds.calls.get((event.run, event.call))
            if tried is not None and not tried.is_undo and tried.name in deeds.done:
                done_at[tried.name] = seq
            elif tried is not None and tried.is_undo:
                is_undoing = True
                seen["undone what a snapshot owed"] += done_at.pop(tried.name, base) < base
