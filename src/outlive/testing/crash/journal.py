"""Reads a journal: for people, and for the steps that must not run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from outlive._kernel.journal.codec import Row, open_journal
from outlive._kernel.journal.event import (
    AnyEvent,
    AttemptFailed,
    RunCreated,
    RunRetried,
    StepDelayed,
    StepFailed,
    StepIntended,
    StepSucceeded,
)
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.replay.lookahead import standing, undone_in
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Store

_OF_STEPS = (StepSucceeded, StepFailed, AttemptFailed, StepDelayed, StepIntended)
_decode = msgspec.json.Decoder(AnyEvent).decode


@dataclass(frozen=True, slots=True)
class Journal:
    """A tree of the store: its root row and its events."""

    root: Run
    rows: list[Row]
    events: list[AnyEvent]


StepKey = tuple[int, int, str]
"""A call of a step: the nonce of its tree, the number of its run, its call. Ids may be given to others."""


@dataclass(slots=True)
class Settled:
    """The steps of some journals that are settled."""

    ended: set[StepKey] = field(default_factory=set)
    """Steps with an outcome."""
    attempts: dict[StepKey, int] = field(default_factory=dict)
    """The last attempt that has failed, or that may not be made again."""
    failed: dict[StepKey, int] = field(default_factory=dict)
    """The last attempt that has failed."""

    def take(self, nonce: int, event: AnyEvent) -> None:
        """Note the part of an event that is about a step."""
        if isinstance(event, StepSucceeded | StepFailed):
            self.ended.add((nonce, event.run, event.call))
        elif isinstance(event, AttemptFailed):
            self.attempts[nonce, event.run, event.call] = event.attempt
            self.failed[nonce, event.run, event.call] = event.attempt
        elif isinstance(event, StepIntended):
            self.attempts[nonce, event.run, event.call] = event.attempt
        elif isinstance(event, StepDelayed):
            # It was about to begin, and was not begun.
            key = nonce, event.run, event.call
            self.attempts[key] = self.failed.get(key, 0)

    def take_back(self, calls: Iterable[StepKey]) -> None:
        """A retry has taken back what was over for these steps."""
        for key in calls:
            self.ended.discard(key)
            self.attempts.pop(key, None)
            self.failed.pop(key, None)

    def add(self, other: Settled) -> None:
        """Add the settled steps of other journals."""
        self.ended |= other.ended
        self.attempts |= other.attempts
        self.failed |= other.failed


def event_of(row: Row) -> AnyEvent:
    """The event of a row that was just written."""
    event: AnyEvent = _decode(row[3])
    return event


def title(event: AnyEvent) -> str:
    """An event in a few words."""
    subject = (
        event.workflow if isinstance(event, RunCreated) else getattr(event, "call", "") or getattr(event, "name", "")
    )
    run = f"[{event.run}]" if event.run else ""
    return f"{type(event).__name__}{run} {subject}".strip()


def render(journals: Iterable[Journal]) -> str:
    """Journals for people."""
    lines = []
    for journal in journals:
        lines.append(f"  journal of run {journal.root.id} ({journal.root.status.value}):")
        lines += [f"    {seq:4} {title(event)}" for seq, event in enumerate(journal.events)]
    return "\n".join(lines) or "  (no journal)"


async def all_runs(store: Store, *, roots_only: bool = False) -> list[Run]:
    """Every run of a store, oldest first."""
    found: list[Run] = []
    before = None
    while page := await store.list_runs(RunFilter(roots_only=roots_only), limit=PAGE_SIZE_MAX, before=before):
        found += page
        before = page[-1].created_at, page[-1].id
    return found[::-1]


async def all_journals(store: Store) -> list[Journal]:
    """Every journal of a store, verified."""
    journals = []
    for root in await all_runs(store, roots_only=True):
        rows = await store.read_journal(root.journal)
        journals.append(Journal(root, rows, open_journal(rows, nonce=root.nonce, run_id=root.id)))
    return journals


def settled_in(journals: Iterable[Journal]) -> Settled:
    """The settled steps of these journals."""
    settled = Settled()
    for journal in journals:
        for event in standing(journal.events, undone_in(journal.events)):
            settled.take(journal.root.nonce, event)
    return settled


def taken_back_in(journals: Iterable[Journal]) -> set[StepKey]:
    """The steps of which a retry of their run has taken something back."""
    return {
        (journal.root.nonce, event.run, event.call)
        for journal in journals
        for event in journal.events
        if isinstance(event, _OF_STEPS) and event not in standing(journal.events, undone_in(journal.events))
    }


def retries_in(journals: Iterable[Journal]) -> Counter[int]:
    """How often the runs of each tree were retried, by its nonce."""
    retries: Counter[int] = Counter()
    for journal in journals:
        retries[journal.root.nonce] = sum(isinstance(it, RunRetried) and not it.run for it in journal.events)
    return retries
