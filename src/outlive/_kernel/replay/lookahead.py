"""The facts about a journal that an execution must know before the journal is fed: how far the run has come already.

Everything else of a replay follows from one event after the other. Six things ask for more. The clock of a run begins
when a worker begins it, and the claim that says when stands behind the event that the code begins with. Code that
reaches a mark (`outlive.patched`) which the journal does not have must know whether it walks where older code has been
before, and takes the old way, or whether it is the first one here. And code that takes a message must know whether the
run has set it aside or refused it, which the journal says behind the message (see `set_aside` and `serving`). And what
a retry has taken back (`RunRetried.undone`) must not reach the code. And a call that names a workflow without a version
must mean the version that the child has. And a call that the journal answers needs no arguments (`Lookahead.digests`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from outlive._kernel.journal.event import (
    AnyEvent,
    AskAnswered,
    AskReceived,
    DetachedStarted,
    MessageSetAside,
    PatchTaken,
    RunChanged,
    RunClaimed,
    RunCreated,
    RunForked,
    RunParked,
    RunReleased,
    RunResumed,
    RunRetried,
    SignalReceived,
    SnapshotTaken,
    StepFailed,
    StepSucceeded,
)

_SAYS_NOTHING = (RunClaimed, RunReleased, RunParked, RunResumed, RunRetried, RunForked, RunChanged)
"""At the end of a journal these say who has it, and not how far the code has come. `RunSuspended` does: the code that
wrote it had come to rest beyond every event before."""

NOTED_AT_ONCE = 500
"""Events that are noted between two stops."""


class Lookahead:
    """The rest of the journal ahead of a replay; empty for a run that is just beginning."""

    __slots__ = (
        "answered",
        "begun_at",
        "children",
        "digests",
        "last",
        "passed",
        "patches",
        "rests",
        "seen",
        "set_aside",
        "undone",
        "written",
    )

    def __init__(self, events: Sequence[AnyEvent] = ()) -> None:
        self.undone = undone_in(events)
        """The events that retries have taken back: see `undone_in`."""
        self.begun_at = begun_at(events)
        """When a worker began the run, if that was later than its creation; else 0."""
        self.rests = rests_in(events, enumerate(events, first_number(events)))
        """When trees that a person has brought back, or forked, went on: by the number of that event."""
        self.patches: set[tuple[int, str]] = set()
        self.set_aside: dict[tuple[int, str], MessageSetAside] = {}
        """Messages that the code of their time could not read, by their run and their place in the journal."""
        self.answered: dict[tuple[int, str], AskAnswered] = {}
        """Asks that the code of their time has answered, by their run and the call of the answer."""
        self.children: dict[tuple[int, str], int] = {}
        """The versions of the children that were started, by their parent and their call: code that names a workflow
        without a version means the version that it meant the first time."""
        self.digests: dict[tuple[int, str], int] = {}
        """The digests of the arguments of steps, children and detached runs that the journal answers for good, by run
        and call: nothing needs their arguments again."""
        last = len(events) - 1
        while last >= 0 and isinstance(events[last], _SAYS_NOTHING):
            last -= 1
        if 0 < last < _first_seen(events):
            last = 0
        first = first_number(events)
        self.last = first + last
        """The number of the last event that older code may have seen."""
        self.seen = first + _lived_through(events, last)
        """The number of the last event that older code has lived through, with all that it does after it: what code
        does from there on, it does for the first time."""
        self.written = -1 if last == 0 and isinstance(events[0], RunCreated) else self.seen
        """The number of the last event whose items of streams are certainly in the store, because they were written
        with it. A run that a client has created may have been claimed, and its worker lost, before they were."""
        behind = events[last + 1 :]
        # The events behind the place where a run was forked come from the code of the other run, and not from this one.
        is_forked = any(isinstance(event, RunForked) for event in behind)
        is_followed = self.seen == self.last and bool(behind) and not is_forked
        self.passed = self.last if is_followed else self.last - 1
        """The number of the last event that has another one behind it, be it only a claim: what older code could read
        there, it has read."""

    def note(self, events: Sequence[AnyEvent]) -> Iterator[None]:
        """Note what single events say, and stop now and then: a journal may be long."""
        valid = standing(events, self.undone) if self.undone else events
        for start in range(0, len(valid), NOTED_AT_ONCE):
            self._note(valid[start : start + NOTED_AT_ONCE])
            yield

    def _note(self, events: Sequence[AnyEvent]) -> None:
        for event in events:
            match event:
                case StepSucceeded() | StepFailed() | DetachedStarted():
                    self.digests[event.run, event.call] = event.digest
                case RunCreated():
                    self.children[event.parent, event.call] = event.version
                    self.digests[event.parent, event.call] = event.digest
                case PatchTaken():
                    self.patches.add((event.run, event.call))
                case MessageSetAside():
                    self.set_aside[event.run, event.message] = event
                case AskAnswered():
                    self.answered[event.run, event.call] = event
                case _:
                    pass


def first_number(events: Sequence[AnyEvent]) -> int:
    """The number of the first event that a journal still has."""
    if not events:
        return 0
    first = events[0]
    return first.events if isinstance(first, SnapshotTaken) else first.before if isinstance(first, RunCreated) else 0


def begun_at(events: Sequence[AnyEvent]) -> int:
    """When a worker began the run that a journal is of, as its first claim says; 0 if that says nothing else than its
    first event."""
    if not events or not isinstance(first := events[0], RunCreated):
        return 0
    if first.begun_at:
        return first.begun_at
    for event in events:
        # The history of a fork without a claim behind it is that of a run that had begun before.
        if isinstance(event, RunForked) and not event.rests:
            break
        if isinstance(event, RunClaimed):
            return event.at if event.begins else 0
    return 0


class Rest(NamedTuple):
    """How long a tree that was brought back, or forked, has rested."""

    claimed_at: int
    """When a worker took it up again."""
    puts_off: bool
    """Whether its timers are due later by this rest. They are not if its code had not begun, nor if it was brought back
    before in the same rest, which puts them off already."""


def rests_in(events: Sequence[AnyEvent], numbered: Iterable[tuple[int, AnyEvent]]) -> dict[int, Rest]:
    """The rests of a tree that are over, by the number of the event that brought it back."""
    rests: dict[int, Rest] = {}
    resting: list[int] = []
    first = events[0] if events else None
    is_begun = not isinstance(first, RunCreated) or bool(first.worker or first.begun_at)
    for number, event in numbered:
        if isinstance(event, RunClaimed):
            rests |= {back: Rest(event.at, is_begun and back == resting[0]) for back in resting}
            is_begun, resting = True, []
        elif isinstance(event, RunRetried) and (event.rests or resting):
            resting.append(number)  # The retries of its children come right behind the retry of the root.
        elif isinstance(event, RunForked):
            resting = [number] if event.rests else []
    return rests


def undone_in(events: Sequence[AnyEvent]) -> dict[int, int]:
    """The numbers of the events that retries have taken back, each with the number that the next child has at least."""
    retries = [event for event in events if type(event) is RunRetried and event.undone]
    return {number: retry.next_number if number >= retry.since else 0 for retry in retries for number in retry.undone}


def standing(events: Sequence[AnyEvent], undone: Container[int]) -> list[AnyEvent]:
    """The events that were not taken back."""
    return [event for number, event in enumerate(events, first_number(events)) if number not in undone]


def _first_seen(events: Sequence[AnyEvent]) -> int:
    """The number of the first event that code can have seen come. A run that goes on as a new one is born with the
    signals and asks that were left to it: these lie in its journal before any worker has claimed it."""
    first = events[0]
    seen = 1
    if isinstance(first, RunCreated) and first.generation:
        while seen < len(events) and isinstance(events[seen], SignalReceived | AskReceived):
            seen += 1
    return seen


def _lived_through(events: Sequence[AnyEvent], last: int) -> int:
    if not events or _is_new(events):
        return -1
    # Whatever a run was parked for, it goes on from there: that its code came no further is all that is known.
    return last - 1 if any(isinstance(event, RunParked) for event in events[last + 1 :]) else last


def _is_new(events: Sequence[AnyEvent]) -> bool:
    """Whether this claim is the first one of a run that no worker has begun; it may have been born with signals and
    asks."""
    first = events[0]
    is_unbegun = isinstance(first, RunCreated) and not first.worker
    return is_unbegun and all(isinstance(event, SignalReceived | AskReceived) for event in events[1:-1])


NOTHING_AHEAD = Lookahead()
"""The lookahead of a run that is just beginning."""
