"""The words of a script: what is done to all stores, as plain data that can be printed, shortened and played again.

A script names trees by numbers of its own (they become the nonces), runs by id and messages by name, because handles
and message ids are each store's own affair. What depends on the state, like the events that a run can have next, is
decided when the operation is played, so that a script still makes sense when parts of it are taken out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum

from outlive._kernel.model import RunStatus
from outlive._kernel.store.contract import MessageKind

STREAMS = ("tokens", "log", "žluť")
ASKED = ("k1", "k2", "k3")
"""Keys of messages that may be answered."""


def _code_of(value: object) -> str:
    """Python that makes the value again."""
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, tuple):
        return f"({''.join(f'{_code_of(each)}, ' for each in value)})"
    return repr(value)


class Part:
    """Prints what is not as it usually is."""

    def __repr__(self) -> str:
        given = [
            f"{each.name}={_code_of(getattr(self, each.name))}"
            for each in fields(self)  # type: ignore[arg-type]
            if getattr(self, each.name) not in (each.default, {}, ())
        ]
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True, repr=False)
class NewTree(Part):
    """The root run of a new tree."""

    number: int
    id: str
    version: int = 1
    worker: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    aside: tuple[int, str] | None = None
    """A tree that takes another name before."""
    successor_of: int = 0
    blobs: tuple[int, ...] = ()
    is_guarded: bool = False
    lives_on: bool = False


@dataclass(frozen=True, repr=False)
class Letter(Part):
    """A message."""

    to: str
    name: str
    kind: MessageKind = MessageKind.SIGNAL
    key: str = ""
    blob: int | None = None


@dataclass(frozen=True, repr=False)
class Line(Part):
    """A line of a stream."""

    stream: str
    text: str
    run: int = 0
    count: int = 1
    times: int = 1
    """How often the text stands in it."""
    head: str = "h"
    number: int = 0
    """Of a line of a workflow."""


@dataclass(frozen=True, repr=False)
class Say(Part):
    """What a worker appends to the streams of a tree while a step runs."""

    tree: int
    lines: tuple[Line, ...]
    mark: int
    epochs_ago: int = 0
    """By how many claims its writer is behind."""


@dataclass(frozen=True, repr=False)
class Gaze(Part):
    """A watch of the end of a run."""

    run: str
    watcher: str
    key: str


@dataclass(frozen=True, repr=False)
class Write(Part):
    """A change of a tree."""

    tree: int
    moves: tuple[str, ...] = ("step",)
    lag: int = 0
    """How far beside the end of the journal it is written."""
    consumed: tuple[str, ...] = ()
    blobs: tuple[int, ...] = ()
    items: tuple[tuple[int, int], ...] = ()
    starts: tuple[NewTree, ...] = ()
    letters: tuple[Letter, ...] = ()
    keeps: int = 0
    """Of a change that forgets: how many of the children it leaves that it might forget."""
    is_guarded: bool = False
    answers: tuple[tuple[str, int], ...] = ()
    """Keys of messages, and what is answered."""
    lines: tuple[Line, ...] = ()
    """What workflows say on streams."""
    reopens: bool = False
    freed: tuple[str, ...] = ()
    """Keys that it takes back."""
    names: str = ""
    """Which row it says that it follows: its own, "another" with the same seq, "none", or the "earlier" one."""


@dataclass(frozen=True, repr=False)
class Turn(Part):
    """A change of a cell."""

    cell: str
    puts: bytes | None = None
    """What it is to hold; None: one byte more than it does."""
    expects: tuple[bytes | None, ...] = ()
    """It raises unless the cell holds one of them (None: it was never written); it takes anything when empty."""


@dataclass(frozen=True, repr=False)
class Mark(Part):
    """A checkpoint."""

    run: str
    sequence: int
    state: str = "A"
    token: int = 1
    output: bytes | None = None


@dataclass(frozen=True, repr=False)
class Operation(Part):
    """One thing to do."""

    verb: str
    changes: tuple[NewTree | Write, ...] = ()
    letters: tuple[Letter, ...] = ()
    start: NewTree | None = None
    worker: str = ""
    name: str = ""
    numbers: tuple[int, ...] = ()
    """What each verb takes them for. Of a transaction: nothing, or whether its writer knows the last row (1, 0)."""
    orphans: tuple[int, ...] = ()
    """Of a claim: how many orphans at most, and for how many seconds they are left alone; as many as there are and not
    at all when empty."""
    ids: tuple[str, ...] = ()
    statuses: tuple[RunStatus, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    finds: dict[str, str] = field(default_factory=dict)
    """Of a list: other filters by their names, and `oldest` for the other order."""
    turns: tuple[Turn, ...] = ()
    """Made at the same time: of different cells, or such that their order does not matter."""
    says: tuple[Say, ...] = ()
    """Appended to streams in one call, each to one of its own."""
    is_narrow: bool = False
    """Whether streams may have little only."""
    gazes: tuple[Gaze, ...] = ()
    marks: tuple[Mark, ...] = ()
    """Appended at the same time: with different sequences, or the very same."""
