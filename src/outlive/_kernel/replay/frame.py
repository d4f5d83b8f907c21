"""One run of a tree while it is in memory, and where in it a durable call happens.

A frame is the live side of a run: its tasks, its signals, how it ends. A scope is one task of it, and gives durable
calls the identity that lets a replay find them again.

The identity of a call is scope + name + occurrence. The scope is the task it is awaited in: every task that a workflow
makes (the branches of a `gather`, the tasks of a `TaskGroup`) has a scope of its own, numbered in the order in which
its parent made them. So a call in one branch never depends on how far another branch has come, two identical calls are
two calls, and a loop is simply the occurrences 1, 2, 3, ...

    charge            the first call of charge in the workflow's own task
    charge#2          the second one
    2/charge          the first one in the second task that the workflow made
    2.1/@timer        the first timer in the first task made by that task
    3.7/resize        item 7 of an `outlive.map`, which takes a place among the tasks
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import deque
from typing import Any, NamedTuple, cast

import msgspec

from outlive._kernel.journal.event import AskReceived, MessageSetAside
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Payload, Wait, WaitKind
from outlive._kernel.model.approval import Decision
from outlive._kernel.model.promise import PROMISE
from outlive._kernel.replay.ask_queue import AskQueue
from outlive._kernel.replay.command import EndRun, WorkflowSpec
from outlive.errors import UnreadableError

NOTHING_PUBLISHED = b"{}"
APPROVAL = "@approval"
PATCH = "@patch/"
SET_ASIDE_MAX = 100
"""How many of the messages that its code could not read a run remembers beyond a snapshot."""

_decode_decision = msgspec.json.Decoder(Decision).decode

SCOPE: contextvars.ContextVar[Scope] = contextvars.ContextVar("outlive_scope")


class Remembered(msgspec.Struct, frozen=True, omit_defaults=True):
    """The past of a scope, as far as a snapshot must keep it."""

    counts: dict[str, int] = {}
    """How often each name was called, approvals left out."""
    asked: int = 0
    """The highest count of any approval. Names may be generated without end, so one number stands for all: after a
    snapshot each approval goes on from it, and no identity repeats."""
    branches: int = 0
    """How many tasks were made."""
    random: tuple[int, tuple[int, ...], float | None] | None = None
    """Where its random numbers are, if it drew any."""


class Scope(msgspec.Struct, eq=False):
    """One task of one run."""

    frame: Frame
    _path: str = ""
    _asked: int = 0
    _branches: int = 0
    _counts: dict[str, int] = {}
    _random: random.Random | None = None

    def call(self, name: str) -> str:
        """The identity of the next call of `name` here."""
        count = self._counts.get(name)
        if count is None:
            count = self._asked if name.startswith(APPROVAL) else 0
        count += 1
        self._counts[name] = count
        occurrence = name if count == 1 else f"{name}#{count}"
        return f"{self._path}/{occurrence}" if self._path else occurrence

    def peek(self, name: str) -> str:
        """The identity that `call` would return, without counting a call."""
        counts = dict(self._counts)
        try:
            return self.call(name)
        finally:
            self._counts = counts

    def branch(self) -> Scope:
        """The scope of the next task made here."""
        self._branches += 1
        return Scope(self.frame, f"{self._path}.{self._branches}" if self._path else str(self._branches))

    def item(self, number: int) -> Scope:
        """The scope of one of many, by its number and not by when it began."""
        return Scope(self.frame, f"{self._path}.{number}")

    def named(self, name: str) -> Scope:
        """The scope of a part of the workflow that has a name, in whatever task it runs."""
        return Scope(self.frame, f"{self._path}.{name}" if self._path else name)

    def random(self) -> random.Random:
        """Random numbers that are the same in every replay and different in every run and scope."""
        if self._random is None:
            self._random = random.Random(f"{self.frame.nonce}/{self.frame.number}/{self._path}")
        return self._random

    def seed_again(self) -> None:
        """Make the next random numbers from what the frame says now."""
        self._random = None

    def remembered(self) -> Remembered:
        """All that identities and random numbers go on from."""
        counts = {name: count for name, count in self._counts.items() if not name.startswith(APPROVAL)}
        asked = (count for name, count in self._counts.items() if name not in counts)
        drawn = None if self._random is None else self._random.getstate()
        return Remembered(counts, max((self._asked, *asked)), self._branches, drawn)

    def go_on(self, remembered: Remembered) -> None:
        """Go on where another one stood."""
        self._counts, self._branches = dict(remembered.counts), remembered.branches
        self._asked = remembered.asked
        if remembered.random is not None:
            self.random().setstate(remembered.random)


def step_of(call: str) -> str:
    """The name of the step in the identity of a call, as `2/charge#3` has it."""
    return call.rpartition("/")[2].partition("#")[0]


class Received(NamedTuple):
    """A message of the world in the hands of a run."""

    payload: Payload
    place: str
    """Where it is in the journal: the seq of its event, or the seq of a snapshot and its place there."""


Decided = tuple[Decision | UnreadableError, Received]
"""The decision of a person, or the reason why it cannot be read; and the message as it came."""


def read_decision(data: Stored, approval: str) -> Decision | UnreadableError:
    """A decision as a journal has it, or why it is none."""
    try:
        return _decode_decision(data)
    except msgspec.MsgspecError as error:
        return UnreadableError(f"the decision on {approval}", "a decision", str(error))


class OpenApproval(msgspec.Struct, eq=False):
    """A request for approval that no one has decided yet."""

    call: str
    future: asyncio.Future[Decided]
    name: str
    title: str
    assignees: tuple[str, ...]
    deadline_at: int | None
    again: str
    """Why it is asked again; empty the first time."""

    def wait(self, run: int) -> Wait:
        """The wait as data."""
        said = [f'("{self.title}")'] if self.title else []
        said += [f"by {', '.join(self.assignees)}"] if self.assignees else []
        said += [f"(asked again, as the decision could not be used: {self.again})"] if self.again else []
        return Wait(kind=WaitKind.APPROVAL, name=self.name, until_at=self.deadline_at, run=run, detail=" ".join(said))


NO_SCOPE = cast("Scope", None)


class Frame(msgspec.Struct, eq=False):
    """The live side of one run; everything in it is rebuilt by a replay."""

    number: int
    id: str
    spec: WorkflowSpec
    nonce: int
    """The seed of its random numbers: see `Execution.seed`."""
    stage: str = ""
    """Where the workflow says that it is, for observers; empty if it says nothing."""
    tags: dict[str, str] = {}
    created_at: int = 0
    parent_id: str | None = None
    task: asyncio.Task[Any] | None = None
    tasks: list[Any] = []
    buffer: dict[str, deque[Received]] = {}
    """Signals that no code waited for when they came, oldest first."""
    waiters: dict[str, deque[asyncio.Future[Received]]] = {}
    asks: dict[str, AskQueue] = {}
    """By name: what it was asked, and what serves that."""
    promises: dict[str, str] = {}
    """The ids of promises, by the names of the signals that settle them."""
    set_aside: list[MessageSetAside] = []
    """The last messages that the code could not read, oldest first, with what they said."""
    approvals: dict[str, OpenApproval] = {}
    """Requests without a decision, by their call."""
    children: int = 0
    """Children that have not ended."""
    unsettled: int = 0
    """Steps that are not waited for, but whose outcome must be known before the run ends: they may be undone."""
    patches: dict[str, bool] = {}
    """The way that was taken at each mark of a change in the code."""
    published: bytes = NOTHING_PUBLISHED
    """JSON of the object that the run shows to people."""
    emitted_items: int = 0
    """How many items its workflow has emitted; the store counts the items of its steps."""
    emitted_bytes: int = 0
    position: bytes | None = None
    """JSON of where the workflow stood, if the run begins with a snapshot."""
    cancel_reason: str | None = None
    is_timed_out: bool = False
    is_closing: bool = False
    """The workflow has ended; its last tasks and children are being wound up."""
    outcome: EndRun | None = None
    ending: EndRun | None = None
    """Asked for, not yet answered by the journal."""
    scope: Scope = NO_SCOPE
    """The scope of the workflow's own task, until the run is over."""

    def __post_init__(self) -> None:
        self.scope = Scope(self)

    def add_task(self, task: asyncio.Task[Any]) -> None:
        """Remember a task of this run; forget the finished ones now and then."""
        tasks = self.tasks
        tasks.append(task)
        if len(tasks) >= 64 and len(tasks) & (len(tasks) - 1) == 0:
            self.tasks = [task for task in tasks if not task.done()]

    def open_tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks that have not ended, the workflow's own left out."""
        if len(self.tasks) == 1:
            return []
        return [task for task in self.tasks if task is not self.task and not task.done()]

    def forget_tasks(self) -> None:
        """The run is over or leaves memory: break the circles of frame, task and context, and of frame and scope."""
        self.task = None
        self.tasks = []
        self.scope = NO_SCOPE

    def receive_signal(self, payload: Payload, name: str, place: str) -> None:
        """Give a signal to who has waited longest for its name, or keep it."""
        signal = Received(payload, place)
        if not self._hand_over(signal, name):
            self.buffer.setdefault(name, deque()).append(signal)

    def _hand_over(self, signal: Received, name: str) -> bool:
        waiters = self.waiters.get(name)
        while waiters:
            waiter = waiters.popleft()
            if not waiter.done():
                waiter.set_result(signal)
                return True
        return False

    def awaited_signals(self) -> list[str]:
        """The names of the signals that are waited for, once for each wait."""
        return [name for name, waiters in self.waiters.items() for waiter in waiters if not waiter.done()]

    def buffered_signal(self, name: str) -> Received | None:
        """The oldest signal of this name that came before anybody asked."""
        buffered = self.buffer.get(name)
        return buffered.popleft() if buffered else None

    def buffered_places(self) -> tuple[str, ...]:
        """Where the signals are in the journal that no code took; promises are none."""
        kept = (signals for name, signals in self.buffer.items() if not name.startswith(PROMISE))
        return tuple(signal.place for signals in kept for signal in signals)

    def buffered_signals(self) -> list[tuple[str, Payload]]:
        """All signals that no code took, by name, oldest first."""
        return [(name, signal.payload) for name, signals in self.buffer.items() for signal in signals]

    def put_back_signal(self, signal: Received, name: str) -> None:
        """A waiter was cancelled with the signal already in its hands: the next one gets it."""
        if not self._hand_over(signal, name):
            self.buffer.setdefault(name, deque()).appendleft(signal)

    def asks_of(self, name: str) -> AskQueue:
        """The asks of this name."""
        return self.asks.setdefault(name, AskQueue())

    def awaited_asks(self) -> list[str]:
        """The names of the asks that are waited for, once for each wait."""
        return [name for name, queue in self.asks.items() for _ in range(queue.awaited)]

    def open_asks(self) -> list[AskReceived]:
        """All asks that this run has to answer and has not, by name, oldest first."""
        return [event for queue in self.asks.values() for event in queue.open.values() if not event.forks]

    def add_set_aside(self, message: MessageSetAside) -> None:
        """Remember a message that the code could not read."""
        self.set_aside = [*self.set_aside, message][-SET_ASIDE_MAX:]

    def waits(self) -> list[Wait]:
        """The signals, asks and approvals that it waits for, as data."""
        signals = [
            Wait(
                kind=WaitKind.PROMISE if name in self.promises else WaitKind.SIGNAL,
                name=self.promises.get(name, name),
                run=self.number,
                detail=self._describe_set_aside(name),
            )
            for name in self.awaited_signals()
        ]
        asks = [Wait(kind=WaitKind.ASK, name=name, run=self.number) for name in self.awaited_asks()]
        return signals + asks + [approval.wait(self.number) for approval in self.approvals.values()]

    def _describe_set_aside(self, name: str) -> str:
        """A note for people about the signals of this name that the code could not read."""
        found = [message for message in self.set_aside if message.name == name and not message.approval]
        if not found:
            return ""
        were = "1 message was" if len(found) == 1 else f"{len(found)} messages were"
        return f"{were} set aside: {found[-1].reason}"
