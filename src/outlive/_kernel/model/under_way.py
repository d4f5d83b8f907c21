"""The report of a worker about the runs that it moves: which steps are under way, and which journals are being
replayed.

A worker knows this in memory. Other processes read it in a cell, one for each session: the worker writes there what has
lasted for some seconds, and only when it has changed. Nothing of it is in a journal. A cell is stored, so fields may be
added to these values, and none may change its meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from outlive._kernel.model.id import child_id
from outlive._kernel.model.instant import MICROSECONDS, instant_of
from outlive._kernel.model.payload import Payload
from outlive._kernel.model.worker import name_in

UNDER_WAY_CELLS = "outlive.under-way/"
"""The prefix of the names of these cells; the id of the session follows."""
STEPS_MAX = 1_200
"""Steps that the cell of one session names, the oldest: as many as a worker runs at once by default."""
STEPS_OF_TREE_MAX = 20
"""Steps of one tree that it names, so that there is room for those of others. The rest of the tree is counted."""
REPLAYS_MAX = 20
"""Replays that it names."""
FAILURE_CHARACTERS_MAX = 200
"""Characters of the last failure of a step."""
ARGUMENTS_BYTES_MAX = 1_000
"""Longer arguments are left out of a cell; the worker itself knows them."""
BYTES_MAX = 64_000
"""All arguments and progress in one cell. What is beyond this is left out."""
ARGUMENTS_SHOWN_MAX = 60
"""Characters of arguments in a sentence."""
NAMED_MAX = 3
"""Steps that a sentence names."""
INTERRUPTED_MAX = 20
"""Steps that the end of a run names."""
_SPANS = (("d", 86_400), ("h", 3_600), ("min", 60))


class StepNote(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """An attempt of a step that runs."""

    root: str
    """The id of the root run of its tree."""
    run: int = 0
    """The number of its run in the tree."""
    call: str
    name: str
    attempt: int = 1
    attempts_max: int | None = None
    since_at: int
    heartbeat_at: int = 0
    """When it last called `heartbeat`; 0 if it never did."""
    progress: Payload | None = None
    """The progress that the step last reported."""
    failure: str = ""
    """How the attempt before it failed."""
    arguments: Payload | None = None
    """A JSON object, by the names of the parameters; None if it is left out."""


class ReplayNote(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A journal that is being replayed: its run does nothing new before that is over."""

    root: str
    since_at: int
    done: int
    """Events that were replayed."""
    events: int
    """Events that the journal has."""


class Interrupted(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A step that was under way when its run ended: what the journal keeps of it."""

    call: str
    run: int = 0
    """The number of its run in the tree."""
    attempt: int = 0
    """0 if it is not known."""
    attempts_max: int | None = None
    since_at: int = 0
    """When the attempt began; 0 if it is not known."""
    worker: str = ""


Note = StepNote | ReplayNote
"""Any note of a worker about a run. A new kind has a field of its own in `Report`."""


class Report(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The report of one session about its runs: the content of a cell."""

    at: int = 0
    steps: tuple[StepNote, ...] = ()
    replays: tuple[ReplayNote, ...] = ()
    unnamed: dict[str, int] = msgspec.field(default_factory=dict)
    """How many more steps are under way in trees that have more than are named, by root."""

    @property
    def says_nothing(self) -> bool:
        """Whether it names no run."""
        return not self.steps and not self.replays

    def of(self, root_id: str) -> Report:
        """The part of the report about one tree."""
        return Report(
            at=self.at,
            steps=tuple(note for note in self.steps if note.root == root_id),
            replays=tuple(note for note in self.replays if note.root == root_id),
            unnamed={root_id: self.unnamed[root_id]} if root_id in self.unnamed else {},
        )

    def within_limits(self) -> Report:
        """The oldest steps of each tree and the oldest replays, and as much of their values as a cell may hold."""
        left, named, unnamed = BYTES_MAX, Counter[str](), Counter[str]()
        steps: list[StepNote] = []
        for note in self.steps:
            if len(steps) == STEPS_MAX or named[note.root] == STEPS_OF_TREE_MAX:
                unnamed[note.root] += 1
                continue
            named[note.root] += 1
            left -= sum(_size(payload) for payload in (note.arguments, note.progress))
            steps.append(note if left >= 0 else msgspec.structs.replace(note, arguments=None, progress=None))
        return Report(at=self.at, steps=tuple(steps), replays=self.replays[:REPLAYS_MAX], unnamed=dict(unnamed))


NOTHING = Report()


def _size(payload: Payload | None) -> int:
    if payload is None:
        return 0
    return len(payload.data) if isinstance(payload.v, msgspec.UnsetType) else len(bytes(payload.v))


def cell_of(session: str) -> str:
    """The name of the cell of a session."""
    return UNDER_WAY_CELLS + session


def report_of(notes: Iterable[Note], *, at: int) -> Report:
    """The report that has these notes."""
    steps: list[StepNote] = []
    replays: list[ReplayNote] = []
    for note in notes:
        if isinstance(note, StepNote):
            steps.append(note)
        else:
            replays.append(note)
    return Report(at=at, steps=tuple(steps), replays=tuple(replays))


def report_in(data: bytes | None) -> Report:
    """The report in a cell; one that cannot be read says nothing."""
    try:
        return msgspec.json.decode(data, type=Report) if data else NOTHING
    except msgspec.MsgspecError:
        return NOTHING


class StepUnderWay(msgspec.Struct, frozen=True, kw_only=True):
    """A step that runs now, as people and programs see it: what `run.steps()` gives."""

    run_id: str
    """The run that called it: a child of the run that was asked for, or that run itself."""
    call: str
    """The call in its run, as the journal names it: `charge`, `charge#2`."""
    name: str
    attempt: int
    attempts_max: int | None
    """How many attempts it may have, or None if they have no limit."""
    since: datetime
    """When this attempt began."""
    worker: str
    """The worker that runs it, or the program outside that has claimed it."""
    heartbeat_at: datetime | None = None
    """When it last gave a heartbeat; None if it gave none."""
    progress: Any = None
    """The progress that the step last reported with a heartbeat."""
    last_failure: str = ""
    """How the attempt before this one failed."""
    arguments: Any = None
    """By the names of the parameters. Only on request, and if they are known here: see `run.steps`."""
    task: str = ""
    """For a remote step: the id of its task."""

    def describe(self, now: datetime) -> str:
        """`charge(order=7), attempt 2 of 5, for 28 min on w1, last failure ConnectionError`."""
        said = [self.name + arguments_shown(self.arguments)]
        said += _attempt_shown(self.attempt, self.attempts_max)
        said.append(f"for {span_shown((now - self.since).total_seconds())}{self.worker and f' on {self.worker}'}")
        if self.heartbeat_at is not None:
            said.append(f"last heartbeat {span_shown((now - self.heartbeat_at).total_seconds())} ago")
        if self.last_failure:
            said.append(f"last failure {self.last_failure}")
        return ", ".join(said)

    def __repr__(self) -> str:
        said = [f"{self.call} of {self.run_id}", *_attempt_shown(self.attempt, self.attempts_max)]
        said.append(f"since {self.since.isoformat(timespec='seconds')}{self.worker and f' on {self.worker}'}")
        return f"<StepUnderWay {', '.join(said)}>"


def step_of(note: StepNote, *, session: str, progress: Any = None, arguments: Any = None) -> StepUnderWay:
    """A note as people see it; the values of its payloads are given."""
    return StepUnderWay(
        run_id=child_id(note.root, note.run) if note.run else note.root,
        call=note.call,
        name=note.name,
        attempt=note.attempt,
        attempts_max=note.attempts_max,
        since=instant_of(note.since_at),
        worker=name_in(session),
        heartbeat_at=instant_of(note.heartbeat_at) if note.heartbeat_at else None,
        progress=progress,
        last_failure=note.failure,
        arguments=arguments,
    )


def steps_shown(steps: Iterable[StepUnderWay], now: datetime, *, run_id: str = "", unnamed: int = 0) -> str:
    """`step charge(order=7), for 28 min on w1 and step pack, for 3 s on w1`; with the run, where it is not `run_id`.
    `unnamed` is how many more there are."""
    described = [
        f"step {step.describe(now)}" + (f", in run {step.run_id}" if run_id and step.run_id != run_id else "")
        for step in steps
    ]
    return _first(described, unnamed)


def interrupted_shown(interrupted: Iterable[Interrupted], at: int, *, run: int = 0, unnamed: int = 0) -> str:
    """`it was in step charge, attempt 2 of 5, for 28 min on w1`: what a run was doing when it ended at `at`; `run` is
    its number, and `unnamed` how many more steps there were. Empty if nothing is known."""
    described = [f"step {_interrupted_step(each, at, run)}" for each in interrupted]
    return f"it was in {_first(described, unnamed)}" if described else ""


def last_words(report: Report, session: str, *, at: int) -> str:
    """`it was in step charge, attempt 2 of 5, for 28 min on w1`, as a session that was lost had said it: without
    arguments, as it goes into the journal. It is not known when it was lost, so a step is shown as it would be at `at`.
    Empty if it had said nothing."""
    if report.replays and not report.steps:
        return f"it was being replayed by {name_in(session)}"
    steps = [_interrupted(note, session) for note in report.steps]
    return interrupted_shown(steps, at, unnamed=sum(report.unnamed.values()))


def _first(described: list[str], unnamed: int) -> str:
    more = unnamed + len(described[NAMED_MAX:])
    return " and ".join(described[:NAMED_MAX] + ([f"{more} more"] if more else []))


def _interrupted(note: StepNote, session: str) -> Interrupted:
    return Interrupted(
        call=note.call,
        run=note.run,
        attempt=note.attempt,
        attempts_max=note.attempts_max,
        since_at=note.since_at,
        worker=name_in(session),
    )


def timed_out(reason: str) -> str:
    """The failure of a run whose time was over, in words."""
    return "did not end within its timeout" + (f": {reason}" if reason else "")


def _interrupted_step(step: Interrupted, at: int, run: int) -> str:
    said = [step.call + (f" of child run {step.run}" if step.run != run else "")]
    said += _attempt_shown(step.attempt, step.attempts_max)
    if step.since_at:
        said.append(f"for {span_shown((at - step.since_at) / MICROSECONDS)}{step.worker and f' on {step.worker}'}")
    return ", ".join(said)


def _attempt_shown(attempt: int, attempts_max: int | None) -> list[str]:
    if attempt <= 1 and (not attempt or (attempts_max or 0) <= 1):
        return []
    return [f"attempt {attempt}" + ("" if attempts_max is None else f" of {attempts_max}")]


def replay_shown(note: ReplayNote) -> str:
    """`being replayed, 40 %`."""
    return f"being replayed, {100 * note.done // max(1, note.events)} %"


def arguments_shown(arguments: Any) -> str:
    """`(order=7)`, cut where it is long; empty if nothing is known."""
    if not isinstance(arguments, dict):
        return ""
    text = ", ".join(_one_argument(name, value) for name, value in arguments.items())
    if len(text) > ARGUMENTS_SHOWN_MAX:
        text = f"{text[: ARGUMENTS_SHOWN_MAX - 3]}..."
    return f"({text})"


def _one_argument(name: str, value: Any) -> str:
    # Only the beginning of it is shown, so a long text need not be written out.
    short = value[:ARGUMENTS_SHOWN_MAX] if isinstance(value, str | list) else value
    return f"{name}={msgspec.json.encode(short).decode()}"


def span_shown(seconds: float) -> str:
    """A span for people, in the largest unit that fits: `3 s`, `28 min`."""
    for unit, size in _SPANS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
