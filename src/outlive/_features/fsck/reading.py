"""One journal, read from its first event to where it ended when its tree was looked at.

Rows are taken one after the other and forgotten, so that a journal of a million events needs no more memory than what
it says of its runs.
"""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import msgspec

from outlive._features.batches.workflows import OF_STEP, OF_WORKFLOW
from outlive._features.fsck.problem import Kind, Problem
from outlive._kernel.journal.codec import NO_ROWS, Row, next_digest, open_row, salt_of, stands_for_all
from outlive._kernel.journal.event import (
    AnyEvent,
    AskAnswered,
    AskReceived,
    RunCancelled,
    RunClaimed,
    RunContinued,
    RunCreated,
    RunFailed,
    RunRetried,
    RunSucceeded,
    RunTimedOut,
    SignalReceived,
    SnapshotTaken,
    StepFailed,
    StepSucceeded,
    payloads_of,
)
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Failure, Payload
from outlive.errors import OutliveError

PROBLEMS_MAX = 50
"""The limit for one journal; a journal that is wholly wrong is not reported row by row."""


class Reading:
    """The content of a journal, and its problems."""

    def __init__(self, root_id: str, *, journal: int, nonce: int) -> None:
        self.root_id, self.journal = root_id, journal
        self.fold = Fold(root_id)
        self.problems: list[Problem] = []
        self.blobs: dict[str, int] = {}
        """Blobs that it refers to, each with an event that does."""
        self.keys: set[str] = set()
        """Keys of signals and asks that became facts, each after the name of the signal or ask."""
        self.answered: set[str] = set()
        """The keys of asks that were answered."""
        self.outcomes: dict[int, Counter[int]] = {}
        """By the number of a run that carries items of a batch: how its items ended, as checksums; 0 where the
        outcome is not in the journal word by word."""
        self._salt = salt_of(nonce)
        self._expected = 0
        self._digest = NO_ROWS
        self._epoch = 0
        self._done: dict[int, int] = {}
        """Calls that have ended, as hashes, each with the event that says so."""

    @property
    def is_sound(self) -> bool:
        """Whether the rows of its runs follow from it."""
        return not self.problems

    def take(self, row: Row) -> None:
        """The next row."""
        seq = row[0]
        if seq != self._expected and (self._expected or not stands_for_all(row, salt=self._salt)):
            self._say(f"rows are missing: the next one is {seq}", self._expected)
        self._expected = seq + 1
        try:
            event = open_row(row, salt=self._salt, run_id=self.root_id)
        except OutliveError as error:
            self._say(str(error), seq)
            return
        self._note(event, seq)
        if self.is_sound:
            self._apply(event, seq)
        self._digest = next_digest(NO_ROWS if isinstance(event, SnapshotTaken) else self._digest, row[2])

    def end(self, tail: int) -> None:
        """There are no more rows."""
        if self._expected <= tail:
            self._say(f"rows are missing: the last one is {tail}", self._expected)

    def _say(self, what: str, seq: int) -> None:
        if len(self.problems) == PROBLEMS_MAX:
            what = "and more that is not listed"
        if len(self.problems) <= PROBLEMS_MAX:
            self.problems.append(Problem(self.root_id, what, seq, Kind.EVENT, self.journal))

    # -- What an event says ----------------------------------------------------------------------------------

    def _note(self, event: AnyEvent, seq: int) -> None:
        for payload in payloads_of(event):
            if payload.blob:
                self.blobs[payload.blob] = seq
        if isinstance(event, SignalReceived) and event.key:
            self.keys.add(f"{event.name}/{event.key}")
        elif isinstance(event, AskReceived | AskAnswered) and not event.forks:
            keys = self.keys if isinstance(event, AskReceived) else self.answered
            keys.add(f"@ask/{event.name}/{event.key}")

    def _apply(self, event: AnyEvent, seq: int) -> None:
        """Fold it, if it may stand here."""
        kind = type(event).__name__
        is_first = not self.fold.runs
        if is_first and (not isinstance(event, RunCreated | SnapshotTaken) or event.run):
            self._say(f"the journal begins with {kind}", seq)
            return
        if not is_first and self.fold.root.status.is_terminal and not isinstance(event, RunRetried):
            self._say(f"{kind} stands after the end of the tree", seq)
            return
        if isinstance(event, RunCreated) and event.run == 0:
            self._epoch = 1 if event.worker else 0
        if isinstance(event, SnapshotTaken):
            self._epoch = event.epoch
        if isinstance(event, RunClaimed):
            if event.epoch != self._epoch + 1:
                self._say(f"claimed as epoch {event.epoch} after epoch {self._epoch}", seq)
            self._epoch = event.epoch
        if isinstance(event, RunSucceeded | RunFailed | RunContinued) and event.follows not in (0, self._digest):
            self._say(f"{kind} is that of another journal: the worker had other events before it", seq)
        if isinstance(event, StepSucceeded | StepFailed):
            call = hash((event.run, event.call))
            if call in self._done:
                self._say(f"step {event.call} has ended before", seq)
            self._done[call] = seq
        if isinstance(event, RunRetried) and event.undone:
            undone = set(event.undone)
            self._done = {call: ended for call, ended in self._done.items() if ended not in undone}
        try:
            self.fold.apply(event)
            self._note_item(event)
        except (AssertionError, KeyError) as error:
            self._say(f"{kind} does not fit: {error!r}", seq)

    def _note_item(self, event: AnyEvent) -> None:
        match event:
            case StepSucceeded() if self.fold.runs[event.run].workflow.startswith(OF_STEP):
                self._outcome(event.run, event.result)
            case StepFailed() if self.fold.runs[event.run].workflow.startswith(OF_STEP):
                self._outcome(event.run, event.failure)
            case RunSucceeded() | RunFailed() | RunCancelled() | RunTimedOut() if event.run:
                self._note_child(event)
            case _:
                return

    def _note_child(self, event: RunSucceeded | RunFailed | RunCancelled | RunTimedOut) -> None:
        parent_id = self.fold.runs[event.run].parent_id or ""
        number = 0 if parent_id == self.root_id else int(parent_id.rpartition("~")[2])
        if not self.fold.runs[number].workflow.startswith(OF_WORKFLOW):
            return
        match event:
            case RunSucceeded():
                self._outcome(number, event.result)
            case RunFailed():
                self._outcome(number, event.failure)
            case _:
                self._outcome(number, None)

    def _outcome(self, run: int, outcome: Payload | Failure | None) -> None:
        self.outcomes.setdefault(run, Counter())[checksum_of(outcome)] += 1


def checksum_of(outcome: Payload | Failure | None) -> int:
    """An outcome of an item, to be compared with another one."""
    return 0 if outcome is None else crc32(msgspec.json.encode(outcome)) or 1
