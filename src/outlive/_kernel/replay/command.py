"""The commands of a run. They are imperative; the worker makes each of them come true as an event.

Two kinds. **Effects** (`RunStep`, `CancelStep`, `AwaitEnd`) may begin only when the event that caused them is durable.
**Journal commands** (`StartChild`, `StartDetached`, `RecordFact`, `TakeSnapshot`, `EndRun`, `Park`) are nothing but the
next facts: they may join the transaction of the event that caused them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.event import (
    ApprovalClosed,
    ApprovalEscalated,
    ApprovalRequested,
    AskAnswered,
    AskReceived,
    DetachedCancelled,
    MessageSetAside,
    PatchTaken,
    PromiseMade,
    RunPublished,
    RunTagged,
    StateLeft,
)
from outlive._kernel.journal.recorded import shown_json
from outlive._kernel.model import Failure, Payload, Retry, RunStatus
from outlive._kernel.model.queue import Queue, QueuePlace

if TYPE_CHECKING:
    from outlive._kernel.model.guard import Guard
    from outlive._kernel.model.state_graph import StateGraph

Recorded = (
    ApprovalRequested
    | ApprovalEscalated
    | ApprovalClosed
    | AskAnswered
    | DetachedCancelled
    | MessageSetAside
    | PatchTaken
    | PromiseMade
    | RunPublished
    | RunTagged
    | StateLeft
)
"""Facts that a run decides by itself: nothing but the next rows of its journal."""


class StepKind(enum.Enum):
    """How a step is called, if not in the plain way."""

    ONCE = "once"
    """Never a second time: that it is about to begin goes into the journal first."""
    PROCESS = "process"
    """In a process of its own."""
    TRANSACTION = "transaction"
    """In a transaction of the store's database, which commits with the journal."""


class StepOptions(msgspec.Struct, frozen=True, gc=False):
    """How the attempts of one call of a step are run."""

    retry: Retry | None = None
    """None for that of the workflow or of the engine, and without one of those for a single attempt."""
    timeout_seconds: float | None = None
    heartbeat_seconds: float | None = None
    """For how long an attempt may give no sign of life."""
    undo: StepSpec | None = None
    """The step that takes its effect back, with the options it is to be called with."""
    parks: bool = False
    """When its attempts are used up the run is parked, and the step does not fail: an undo."""
    guard: Guard | None = None
    """Asked before every attempt."""
    unsettable: str = ""
    """Why no person may say what its result is, by a fork or by skipping it; empty if one may."""


class StepSpec(msgspec.Struct, frozen=True):
    """The facts about a step that the core and the executor need."""

    name: str
    fn: Any
    signature: Signature
    is_async: bool
    options: StepOptions
    registered: tuple[type[BaseException], ...] = ()
    """Exception classes that reach the workflow as themselves."""
    kind: StepKind | None = None
    """None for a plain step, which the executor sees at one look."""
    resources: Any = None
    """The resources that the function receives by keyword and no journal knows (`_define.resources.Wanted`), or None;
    the code that calls it is given them first, before the call begins."""
    is_method: bool = False
    """Whether it is called on an object, which is not an argument of the call."""
    known_as: str = ""
    """The name by which a process of its own finds it, if that is another one: a flow calls its steps by their ids."""
    shown: Callable[[], Mapping[str, Any]] | None = None
    """Gives the arguments that people see, of a function that has them in a closure; never called by a replay."""
    by_name: bool = False
    """Whether programs without its code may start a run of it."""


class WorkflowSpec(msgspec.Struct, frozen=True):
    """The facts about a workflow that the core needs."""

    name: str
    version: int
    fn: Any
    signature: Signature
    timeout_seconds: float | None = None
    registered: tuple[type[BaseException], ...] = ()
    """Exception classes that reach a parent as themselves."""
    resumable: bool = True
    """Whether a run goes on by itself after its worker was lost."""
    forgets: bool = False
    """Whether its runs may take snapshots, and its function can be called without arguments to begin from one."""
    observers: dict[str, tuple[Any, ...]] = {}
    """The observers of its runs, by the hook that they want to be called."""
    strict_arguments: bool = False
    """Whether a call with other arguments than the journal has contradicts the journal."""
    retry: Retry | None = None
    """For its steps that have none of their own."""
    queue: Queue | str | None = None
    """Where its runs wait for their turn, or the name of that; None if they need not."""
    uses: frozenset[str] = frozenset()
    """The names of the steps and workflows without which a worker cannot run it; a flow has them in its document."""
    graph: Callable[[], StateGraph] | None = None
    """Gives its states for a picture, once all are defined; None if it is not a machine."""


class RunStep(msgspec.Struct, frozen=True, gc=False):
    """Run one attempt of a step; its outcome comes back as an event for (`run`, `call`)."""

    run: int
    call: str
    step: StepSpec
    arguments: bytes
    digest: int
    options: StepOptions
    attempt: int = 1
    first_at: int = 0
    """When the first attempt began; 0 as long as none has failed."""
    not_before_at: int = 0
    progress: bytes | None = None
    """JSON of what the last attempt saved."""
    item: int = -1
    """Its place in a batch."""
    intended: int = 0
    """For a step that is called once: the attempt that the journal says was about to begin."""
    delayed_by: str = ""
    """The reason for which this attempt waits, if it is not its back-off."""
    has_turn: bool = False
    """Whether it is lined up in its rate limit."""

    @property
    def lacks_intent(self) -> bool:
        """Whether the journal must say that this attempt is about to begin before it may."""
        return self.step.kind is StepKind.ONCE and self.intended < self.attempt

    def arguments_for_people(self) -> bytes:
        """The arguments as a JSON object, by name: nothing is hidden and nothing is cut yet.

        Raises:
            Exception: what the code raises that is to show them.
        """
        shown = self.step.shown
        return self.step.signature.by_name(self.arguments) if shown is None else shown_json(shown())


class CancelStep(msgspec.Struct, frozen=True, gc=False):
    """The workflow no longer waits for this step."""

    run: int
    call: str


class StartChild(msgspec.Struct, frozen=True, gc=False):
    """Begin a run in this tree."""

    run: int
    """The number of the new run."""
    parent: int
    call: str
    workflow: WorkflowSpec
    arguments: bytes
    digest: int
    timeout_at: int | None
    item: int = -1
    """Its place in a batch."""


class StartDetached(msgspec.Struct, frozen=True, gc=False):
    """Begin a tree of its own."""

    run: int
    call: str
    run_id: str
    workflow: WorkflowSpec
    arguments: bytes
    digest: int
    tags: dict[str, str]
    timeout_seconds: float | None
    payload: Payload | None = None
    """Its input, if that lies in the store already; else it is made of `arguments`."""
    place: QueuePlace | None = None
    """None for that of its workflow."""


class AwaitEnd(msgspec.Struct, frozen=True, gc=False):
    """Let the run hear of the end of another tree: now, if that has ended, else when it does."""

    run_id: str
    asked: int
    """The seq of the event after which the run asked."""
    started: str = ""
    """The workflow, if the run has started that tree itself: it is to be a run of this workflow."""


class RecordFact(msgspec.Struct, frozen=True, gc=False):
    """Write down a fact that the run has decided by itself."""

    run: int
    call: str
    fact: Recorded
    """The event, without its time and its payload."""
    data: bytes | None = None
    """The payload of the event, before it is packed."""


class Emit(msgspec.Struct, frozen=True, gc=False):
    """Let readers of a stream have an item, with the event that led to it."""

    run: int
    stream: str
    data: bytes
    number: int
    """Rises along the journal, and is the same in every replay."""
    items: int
    """How many items the workflow of this run has emitted so far."""
    bytes: int


class TakeSnapshot(msgspec.Struct, frozen=True, gc=False):
    """Put everything so far into one event, and forget the rest."""

    data: bytes
    """JSON of `outlive._kernel.replay.snapshot.Standing`."""
    signals: tuple[tuple[str, Payload], ...]
    """Signals that no code has taken, by name."""
    next_number: int
    """The number of the next child: all earlier children have ended."""
    asks: tuple[AskReceived, ...] = ()
    """Asks without an answer, as they were received."""
    set_aside: tuple[MessageSetAside, ...] = ()
    """The last messages that the code could not read, with what they said."""


class Successor(msgspec.Struct, frozen=True, gc=False):
    """The run as which a workflow continues."""

    workflow: WorkflowSpec
    arguments: bytes


class EndRun(msgspec.Struct, frozen=True, gc=False):
    """A run of the tree has come to its end."""

    run: int
    status: RunStatus
    result: bytes | None = None
    failure: Failure | None = None
    reason: str = ""
    successor: Successor | None = None
    """For a continued run."""


class Park(msgspec.Struct, frozen=True, gc=False):
    """Stop and wait for a person: the workflow cannot go on, and failing it would lose it."""

    reason: str
    lacks: str = ""
    """The name of a change that the run has taken and this code has not asked for: code that has it may go on."""


Command = (
    RunStep | CancelStep | StartChild | StartDetached | AwaitEnd | RecordFact | Emit | TakeSnapshot | EndRun | Park
)
