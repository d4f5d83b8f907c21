"""What a run did, as data that can be compared: commands, books, lives. And invariant I9 as one function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, assert_never

from outlive._kernel.journal.event import AnyEvent, Ending
from outlive._kernel.model import Wait
from outlive._kernel.replay.command import (
    AwaitEnd,
    CancelStep,
    Command,
    Emit,
    EndRun,
    Park,
    Recorded,
    RecordFact,
    RunStep,
    StartChild,
    StartDetached,
    TakeSnapshot,
)
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.feeding import feed
from outlive._kernel.replay.snapshot import SNAPSHOT
from outlive.events import PatchTaken, RunFailed, RunSucceeded
from outlive.types import Workflow
from tests.replay.define import TURNS_MAX, Code, unpack

Asked = tuple[object, ...]
"""A command as data: two commands are the same if and only if these are equal."""
Key = tuple[str, int, str]
"""What an answer in the journal refers to."""


def describe(command: Command) -> Asked:
    """A command as data, taken at once: a retried step changes its command."""
    head: Asked
    match command:
        case RunStep():
            head = ("step", command.run, command.call, command.step.name, command.arguments, command.digest)
            return (*head, command.attempt, command.not_before_at, command.progress)
        case CancelStep():
            return ("cancel step", command.run, command.call)
        case StartChild():
            head = ("child", command.parent, command.call, command.run, command.workflow.name)
            return (*head, command.arguments, command.digest, command.timeout_at)
        case StartDetached():
            head = ("detached", command.run, command.call, command.run_id, command.workflow.name)
            return (*head, command.arguments, command.digest)
        case AwaitEnd():
            return ("await end", command.run_id, command.asked, command.started)
        case RecordFact():
            return ("record", command.run, command.call, command.fact, command.data)
        case Emit():
            return ("emit", command.run, command.stream, command.data, command.number)
        case TakeSnapshot():
            return ("snapshot", command.data, command.signals)
        case EndRun():
            failure = command.failure and (command.failure.type, command.failure.message)
            return ("end", command.run, command.status.value, command.result, failure, command.reason)
        case Park():
            return ("park", command.reason)
        case _:
            assert_never(command)


def key_of(command: Command) -> Key:
    """What the answer to a command will refer to."""
    match command:
        case RunStep() | CancelStep() | StartDetached() | RecordFact():
            return ("call", command.run, command.call)
        case StartChild():
            return ("call", command.parent, command.call)
        case Emit():
            return ("emit", command.run, str(command.number))
        case AwaitEnd():
            return ("end of another", 0, command.run_id)
        case TakeSnapshot():
            return ("call", *SNAPSHOT)
        case EndRun():
            return ("end", command.run, "")
        case Park():
            return ("park", 0, "")
        case _:
            assert_never(command)


@dataclass(frozen=True)
class Books:
    """What is left to do after an event: the state of a run as a worker sees it."""

    outstanding: tuple[Asked, ...]
    waits: tuple[Wait, ...]
    wake_at: int | None


def sort_asked(commands: Iterable[Command]) -> tuple[Asked, ...]:
    """Commands as data, in an order of their own."""
    return tuple(sorted((describe(command) for command in commands), key=repr))


def read_books(execution: Execution) -> Books:
    """The books as the execution keeps them."""
    waits = tuple(sorted(execution.waits(), key=repr))
    return Books(sort_asked(execution.outstanding()), waits, execution.wake_at())


@dataclass
class Life:
    """What one run did."""

    code: Code
    of: Workflow[..., Any]
    journal: list[AnyEvent] = field(default_factory=list)
    asked: list[list[Asked]] = field(default_factory=list)
    """What each event made the run ask for."""
    books: list[Books] = field(default_factory=list)
    """The books after each event."""
    steps_run: list[str] = field(default_factory=list)
    """Identity of each step whose function was called, in order."""
    park: str | None = None
    """Why it was parked."""

    @property
    def end(self) -> Ending | None:
        """The last event of the root run, if it has ended."""
        last = self.journal[-1]
        return last if isinstance(last, Ending) and last.run == 0 else None

    @property
    def status(self) -> str:
        """How it stands, in one word."""
        if self.park is not None:
            return "parked"
        return "waiting" if self.end is None else type(self.end).__name__.removeprefix("Run").lower()

    @property
    def result(self) -> Any:
        """What the workflow returned."""
        assert isinstance(self.end, RunSucceeded), (self.status, self.park, self.end)
        return self.of.spec.signature.result.decode(unpack(self.end.result), "the result")

    @property
    def failure(self) -> str:
        """`type: message` of what the workflow raised."""
        assert isinstance(self.end, RunFailed), (self.status, self.park, self.end)
        return f"{self.end.failure.type}: {self.end.failure.message}"

    @property
    def all_asked(self) -> list[Asked]:
        """Every command, in order."""
        return [command for each in self.asked for command in each]

    @property
    def calls(self) -> list[str]:
        """Identities of all that was asked of the world, in order: `call`, or `run:call` in a child."""
        return [call_name(each[1], each[2]) for each in self.all_asked if each[0] in ("step", "child", "detached")]

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events, in order."""
        return [type(event).__name__ for event in self.journal]


def call_name(run: object, call: object) -> str:
    """An identity as text."""
    return f"{run}:{call}" if run else str(call)


@contextmanager
def fed(
    code: Code, journal: Iterable[AnyEvent], *, turns_max: int = TURNS_MAX, compares_arguments: bool = True
) -> Iterator[Execution]:
    """An execution that has seen these events; dropped at the end."""
    execution = code.execution(turns_max=turns_max, compares_arguments=compares_arguments)
    try:
        events = list(journal)
        execution.look_ahead(events)
        for event in events:
            feed(execution, event)
        yield execution
    finally:
        execution.drop()


def is_inside_transaction(journal: Sequence[AnyEvent], length: int) -> bool:
    """Whether a mark of a change would be cut off from the facts before it: a worker writes them in one transaction."""
    is_mark = length < len(journal) and isinstance(journal[length], PatchTaken)
    return is_mark and isinstance(journal[length - 1], Recorded)


def assert_replays(life: Life) -> None:
    """Invariant I9: from every prefix of the journal a replay finds the same books and goes on in the same way."""
    for length in range(1, len(life.journal) + 1):
        if is_inside_transaction(life.journal, length):
            continue
        with fed(life.code, life.journal[:length], compares_arguments=False) as execution:
            assert read_books(execution) == life.books[length - 1], f"after {length} events, as a worker replays"
        with fed(life.code, life.journal[:length]) as execution:
            assert read_books(execution) == life.books[length - 1], f"after {length} events"
            for seq in range(length, len(life.journal)):
                asked = [describe(command) for command in feed(execution, life.journal[seq])]
                assert asked == life.asked[seq], f"event {seq}, replayed from {length}"
