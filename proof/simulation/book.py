"""What the store's journals say, kept by a reader of its own: everything is checked the moment it is written.

A book follows one journal. It folds each new event itself and compares the fold with the row; it knows in which epoch
everything was said; so the ledger of effects can ask it what was known to whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

import msgspec

from outlive._kernel.journal.codec import Row, open_row, salt_of
from outlive._kernel.journal.event import (
    AnyEvent,
    AttemptFailed,
    CancelRequested,
    Ending,
    Event,
    MessageSetAside,
    RunClaimed,
    RunCreated,
    RunForked,
    RunParked,
    RunRetried,
    RunSuspended,
    SignalReceived,
    SnapshotTaken,
    StepFailed,
    StepSucceeded,
    TimerFired,
)
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.model.pause import PAUSED
from outlive._kernel.store.memory.state import Tree
from outlive.errors import OutliveError

E = TypeVar("E", bound=Event)
StepKey = tuple[int, str]
"""The number of a run in its tree, and its call."""
NEAR_MICROSECONDS = 200_000
OVERDUE_MICROSECONDS = 2_000_000


class Record(Protocol):
    """Where a book says what it saw."""

    def complain(self, what: str) -> None:
        """Something is wrong."""

    def happened(self, what: str) -> None:
        """Something interesting happened."""


class Book:
    """One journal, followed from its first event on."""

    def __init__(self, tree: Tree, record: Record) -> None:
        self._tree = tree
        self._record = record
        self._rows: list[Row] = []
        self.root_id = tree.root.root_id
        self.nonce = tree.root.nonce
        self._salt = salt_of(self.nonce)
        self.fold = Fold(self.root_id)
        self.events: list[AnyEvent] = []
        self.outcomes: dict[StepKey, int] = {}
        """Steps with an outcome, and the epoch in which it was written."""
        self.attempts: dict[StepKey, dict[int, int]] = {}
        """Attempts that have failed, and the epoch in which that was written."""
        self.cancels: dict[int, int] = {}
        """Runs that were asked to stop, and the epoch in which they heard of it."""
        self.undone: set[int] = set()
        """Events that retries have taken back."""
        self.retried_in = -1
        """The last epoch before the run was retried; -1 if it was not."""
        self.copied = 0
        """How many of its events are the history of another run, of which it is a fork."""

    @property
    def journal(self) -> int:
        """The handle of the journal."""
        return self._tree.journal

    @property
    def is_current(self) -> bool:
        """Whether there is nothing new."""
        return self._tree.rows[-1][0] == len(self.events) - 1

    @property
    def epoch(self) -> int:
        """How often the tree was claimed."""
        return self.fold.root.epoch

    @property
    def generation(self) -> int:
        """How often the run had gone on as a new one when this journal began."""
        first = self.events[0]
        created = first.created if isinstance(first, SnapshotTaken) else first
        return created.generation if isinstance(created, RunCreated) else 0

    def standing(self, kind: type[E]) -> list[E]:
        """The events of a kind that were not taken back."""
        return [it for seq, it in enumerate(self.events) if isinstance(it, kind) and seq not in self.undone]

    def ends_of(self, calls: set[str]) -> Iterator[tuple[int, int, bool]]:
        """The attempts of steps that have an outcome: epoch, attempt, and whether it succeeded."""
        epoch = 0
        for event in self.events:
            epoch = 1 if isinstance(event, RunCreated) and event.worker else getattr(event, "epoch", epoch)
            if isinstance(event, StepSucceeded | AttemptFailed) and event.run == 0 and event.call in calls:
                yield epoch, event.attempt, isinstance(event, StepSucceeded)

    def catch_up(self, forgetting: Sequence[Row] = ()) -> list[AnyEvent]:
        """Read what is new, and check it; the new events.

        Args:
            forgetting: all that was written if a snapshot was among it, as some rows of it are gone already.
        """
        rows, known = self._tree.rows, self._rows
        if forgetting:
            known = self._rows = [row for row in (*known, *forgetting) if row[0] >= rows[0][0]]
        if len(rows) < len(known) or (known and rows[len(known) - 1] is not known[-1]):
            self._record.complain(f"journal of {self.root_id}: rows that were durable have changed or are gone")
            return []
        new = rows[len(known) :]
        known += new
        new = [*forgetting, *new]
        events = [event for row in new if (event := self._take(row)) is not None]
        if new:
            self._compare()
        if rows[0][0] and not isinstance(self.events[rows[0][0]], SnapshotTaken):
            self._record.complain(
                f"journal of {self.root_id} begins with event {rows[0][0]}, and that is not a snapshot"
            )
        return events

    def _take(self, row: Row) -> AnyEvent | None:
        try:
            event = open_row(row, salt=self._salt, run_id=self.root_id)
        except OutliveError as error:
            self._record.complain(f"journal of {self.root_id}: {error}")
            return None
        where = f"journal of {self.root_id}, event {len(self.events)} ({type(event).__name__})"
        if row[0] != len(self.events):
            self._record.complain(f"{where} has the number {row[0]}")
        if self.events and self.fold.root.status.is_terminal and not isinstance(event, RunRetried):
            self._record.complain(f"{where} stands behind the end")
        if isinstance(event, RunClaimed) and event.epoch != self.epoch + 1:
            self._record.complain(f"{where} claims epoch {event.epoch} after {self.epoch}")
        self._look(event, where)
        before = self.fold.runs.get(0)
        try:
            self.fold.apply(event)
            if isinstance(event, SnapshotTaken) and before is not None:
                self._compare_snapshot(event, before, where)
        except (AssertionError, KeyError) as error:
            self._record.complain(f"{where} does not fit: {error!r}")
        self.events.append(event)
        return event

    def _look(self, event: AnyEvent, where: str) -> None:
        """Remember what others may want to know, and see what is against the rules for its kind."""
        if isinstance(event, StepSucceeded | StepFailed):
            key = event.run, event.call
            if key in self.outcomes:
                self._record.complain(f"{where}: step {event.call} has a second outcome")
            self.outcomes[key] = self.epoch
        elif isinstance(event, AttemptFailed):
            failed = self.attempts.setdefault((event.run, event.call), {})
            if event.attempt in failed:
                self._record.complain(f"{where}: attempt {event.attempt} of {event.call} has failed before")
            failed[event.attempt] = self.epoch
        elif isinstance(event, RunRetried):
            self._take_back(event)
        elif isinstance(event, RunForked):
            self.copied = len(self.events)
        elif isinstance(event, CancelRequested):
            self.cancels.setdefault(event.run, self.epoch)
        elif isinstance(event, MessageSetAside):
            self._record.happened("message set aside in a snapshot" if "." in event.message else "message set aside")
        elif isinstance(event, RunParked):
            kinds = ("quarantined", PAUSED)
            self._record.happened(next((kind for kind in kinds if event.reason.startswith(kind)), "parked"))
        elif isinstance(event, Ending) and self.fold.runs[event.run].status.is_terminal:
            self._record.complain(f"{where}: run {event.run} ends twice")
        elif self.events:
            self._look_back(event, self.events[-1])

    def _take_back(self, event: RunRetried) -> None:
        """What a retry takes back may happen again."""
        self.retried_in = self.epoch
        self.undone.update(event.undone)
        for seq in event.undone:
            gone = self.events[seq]
            if isinstance(gone, StepSucceeded):
                # No program here does anything because it fails.
                self._record.complain(f"a retry of {self.root_id} takes back that {gone.call} has completed")
            if isinstance(gone, StepSucceeded | StepFailed):
                self.outcomes.pop((gone.run, gone.call), None)
            elif isinstance(gone, AttemptFailed):
                self.attempts[gone.run, gone.call].pop(gone.attempt, None)
            elif isinstance(gone, CancelRequested):
                self.cancels.pop(gone.run, None)

    def _look_back(self, event: AnyEvent, before: Event) -> None:
        """Two events in a row that tell a story."""
        is_near = abs(event.at - before.at) <= NEAR_MICROSECONDS
        if isinstance(event, RunClaimed) and isinstance(before, RunSuspended) and before.wake_at is not None:
            if event.at - before.wake_at > OVERDUE_MICROSECONDS:
                self._record.happened("timer overdue at recovery")
        elif isinstance(event, TimerFired) and isinstance(before, SignalReceived) and is_near:
            self._record.happened("signal right before its timeout")
        elif isinstance(event, SignalReceived) and isinstance(before, TimerFired) and is_near:
            self._record.happened("signal right after its timeout")
        elif isinstance(event, SignalReceived) and isinstance(before, RunCreated) and before.generation:
            self._record.happened("continued with a pending signal")

    def _compare(self) -> None:
        """The rows are the fold of the journal; messages may have moved the wake-up of the root forward."""
        for number, folded in self.fold.runs.items():
            row = self._tree.runs.get(number)
            if row is None:
                self._record.complain(f"run {number} of {self.root_id} is in the journal and has no row")
                continue
            for name in _COMPARED:
                found, wanted = getattr(row, name), getattr(folded, name)
                if found != wanted and _plain(found) != _plain(wanted):
                    if name == "wake_at" and number == 0 and self._may_be_woken(folded, found, wanted):
                        continue
                    self._record.complain(f"run {row.id}: {name} is {found!r} in the row, {wanted!r} in the journal")

    def _compare_snapshot(self, event: SnapshotTaken, before: Run, where: str) -> None:
        """A worker that begins with a snapshot finds the run as it was before."""
        for name in _COMPARED:
            was, is_ = getattr(before, name), getattr(self.fold.root, name)
            if name != "updated_at" and was != is_ and _plain(was) != _plain(is_):
                self._record.complain(f"{where}: {name} was {was!r}, and is {is_!r} behind it")
        if event.events != len(self.events):
            self._record.complain(f"{where} says that it stands for {event.events} events")
        self._record.happened("snapshot taken")

    def _may_be_woken(self, folded: Run, found: int | None, wanted: int | None) -> bool:
        # A tree in motion keeps the wake-up of a message that came when the store's clock had been set back.
        may_be = bool(self._tree.inbox) or folded.status is RunStatus.RUNNING
        return may_be and found is not None and (wanted is None or found <= wanted)


_COMPARED = [name for name in Run.__struct_fields__ if name not in {"journal", "id", "root_id", "parent_id"}]
"""The handle is the store's, and a tree may be renamed."""


def _plain(value: object) -> object:
    """Payloads hold raw JSON, which compares by identity."""
    return msgspec.json.encode(value) if isinstance(value, msgspec.Struct) else value
