"""The verdict about one open run: how a worker with this code would treat it, found out without doing anything of it.

The journal is fed to the code as a worker does it that takes the run over (`feed_again`), and the same errors stop it.
What the code asks for is looked at and not carried out. All of it counts as a replay, also the code behind the last
event: it logs nothing, and `current_run().is_replaying` is true.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Collection, Iterator, Mapping

import msgspec

from outlive._kernel.journal.codec import Row, open_journal
from outlive._kernel.journal.event import AnyEvent, Ending
from outlive._kernel.journal.redaction import Redaction
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.replay.command import EndRun, Park
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.feeding import feed_again
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.tree.payloads import TreePayloads
from outlive.errors import OutliveError, UnreadableError
from outlive.errors.program import DivergenceError, WorkflowNotFoundError
from outlive.testing.rerun import is_unmoved

WHAT_CHARACTERS_MAX = 1_000


class Kind(enum.StrEnum):
    """The fate of a run."""

    DIVERGES = "diverges"
    """It is parked: the code asks for something else than the journal has."""
    UNREADABLE = "unreadable"
    """It is parked: the code cannot read a value that is stored."""
    UNDEFINED = "undefined"
    """It waits, or is parked: the code does not have its workflow in its version, or lacks a step of its flow."""
    DECLINED = "declined"
    """It waits: it has taken a change that this code does not know."""
    FAILS = "fails"
    """It, or a child of it, fails as soon as a worker takes it, where the code of its time waited."""
    STOPS = "stops"
    """It is parked for another reason: the code waits for nothing that can come, spins, or raises an exception that is
    not an answer."""
    DAMAGED = "damaged"
    """Its journal cannot be read by any code."""
    UNDECIDED = "undecided"
    """The process that replayed it died, or did not come to an end."""
    ENDS = "ends"
    """It ends well as soon as a worker takes it, where the code of its time waited."""
    ARGUMENTS = "arguments"
    """It goes on; some calls are made with other arguments than the journal has, and the journal counts."""

    @property
    def is_problem(self) -> bool:
        """Whether such a run would not go on as it should."""
        return self not in (Kind.ENDS, Kind.ARGUMENTS)


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """An open run as a process that replays it must know it."""

    id: str
    definition: str
    journal: int = 0
    """Where its journal is; 0 for one behind a server, which finds it by the id."""
    nonce: int = 0
    is_parked: bool = False
    is_damaged: bool = False
    """Whether its row cannot be read."""
    reason: str = ""
    """Why it is parked, or what is wrong with its row."""

    @classmethod
    def of(cls, run: Run) -> Tree:
        """From its row."""
        is_parked, is_damaged = run.status is RunStatus.PARKED, run.status is RunStatus.DAMAGED
        return cls(
            id=run.id,
            definition=run.definition,
            journal=run.journal,
            nonce=run.nonce,
            is_parked=is_parked,
            is_damaged=is_damaged,
            reason=run.reason if is_parked or is_damaged else "",
        )


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that would happen to one run."""

    run_id: str
    kind: Kind
    definition: str
    """The workflow whose code stops: that of the run, or of a child."""
    seq: int | None = None
    """The event at which it stops."""
    journal: str = ""
    """The event of the journal at this place."""
    code: str = ""
    """The request of the code at this place."""
    what: str = ""
    """More for people to know."""
    likeness: str = ""
    """The words that runs of one group have in common, if `what` says more than that."""
    is_known: bool = False
    """Whether the run is parked already, for this very reason."""


class Task(msgspec.Struct):
    """The task of a process that replays: where the code is, and where the runs are."""

    app: str
    url: str


class Answer(msgspec.Struct):
    """The answer of that process to its task, and to each list of trees."""

    findings: list[Finding] = []
    error: str = ""
    """Why it can replay nothing, or cannot read the trees."""


class Judge:
    """The code of one process against journals."""

    def __init__(self, environment: Environment, redaction: Redaction) -> None:
        self._environment = environment
        self._redaction = redaction
        registry = environment.registry
        self._definitions = frozenset(registry.definitions())
        self._lacking = registry.lacking()

    def judge_definition(self, tree: Tree) -> Finding | None:
        """Whether a worker with this code would take the run at all; None if it would."""
        if tree.definition in self._definitions:
            return None
        if lacks := self._lacking.get(tree.definition):
            what = f"flow {tree.definition} needs {', '.join(sorted(lacks))}, which this code does not define"
        else:
            name = tree.definition.rpartition("@")[0]
            others = sorted(each for each in self._definitions if each.rpartition("@")[0] == name)
            what = f"this code does not define {tree.definition}"
            if others:
                what += f"; it has {', '.join(others)}"
        return Finding(run_id=tree.id, kind=Kind.UNDEFINED, definition=tree.definition, what=what)

    def judge(self, tree: Tree, rows: list[Row], blobs: Mapping[str, bytes]) -> list[Finding]:
        """Replay a run; what would happen to it, and nothing if it would go on as it was."""
        try:
            events = open_journal(rows, nonce=tree.nonce, run_id=tree.id)
        except OutliveError as error:
            return [_finding(tree, Kind.DAMAGED, tree.definition, None, what=str(error), reason=str(error))]
        if isinstance(events[-1], Ending) and not events[-1].run:
            return []  # It has ended meanwhile.
        execution = self._execution_of(tree, blobs)
        try:
            return list(self._replay(tree, execution, events))
        except Exception as error:  # A worker that rebuilds it does so too: a bug, or the user's code.
            kind = f"it could not be replayed: {type(error).__qualname__}"
            text = f"{kind}: {error}"
            seq = execution.events
            return [_finding(tree, Kind.STOPS, tree.definition, seq, what=text, likeness=kind, reason=text)]
        finally:
            execution.drop()

    def _execution_of(self, tree: Tree, blobs: Mapping[str, bytes]) -> Execution:
        environment = self._environment
        payloads = TreePayloads(tree.id, nonce=tree.nonce, packer=environment.packer)
        payloads.blobs = dict(blobs)
        execution = Execution(
            tree.id,
            resolve=environment.registry.workflow,
            unpack=payloads.unpack,
            unpack_foreign=payloads.unpack_foreign,
            turns_max=environment.limits.turns_per_event_max,
            retry=environment.retry,
            around=environment.around,
        )
        execution.refuses_plain = environment.packer.refuses_plain
        return execution

    def _replay(self, tree: Tree, execution: Execution, events: list[AnyEvent]) -> Iterator[Finding]:
        execution.compares_arguments = True
        execution.look_ahead(events)
        # Behind the last event, the code repeats its messages to the world when a worker takes the run.
        execution.ahead.seen = sys.maxsize
        for event in events:
            for command in feed_again(execution, event):
                if isinstance(command, Park):
                    yield _stopped(tree, execution, command)
                    return
        yield from _differences(tree, execution)
        yield from self._endings(tree, execution, events)

    def _endings(self, tree: Tree, execution: Execution, events: list[AnyEvent]) -> Iterator[Finding]:
        """The code has ended where the journal is open: that of its time would have written its end with the last
        event."""
        if tree.is_parked or is_unmoved(events):
            return
        for command in execution.outstanding():
            if not isinstance(command, EndRun):
                continue
            spec, what, likeness = execution.frames[command.run].spec, command.status.value, ""
            if command.failure is not None:
                failure = self._redaction.hide_failure(command.failure)
                place = _place_in(failure.traceback)
                likeness = f"{what}: {failure.type} {place}"
                what = f"{what}: {failure.type}: {failure.message}\n{place}".rstrip()
            kind = Kind.ENDS if command.status in _GOOD_ENDS else Kind.FAILS
            definition, seq = f"{spec.name}@{spec.version}", execution.events - 1
            yield _finding(tree, kind, definition, seq, what=what, likeness=likeness)


_GOOD_ENDS: Collection[RunStatus] = (RunStatus.SUCCEEDED, RunStatus.CONTINUED)


def _place_in(traceback: str) -> str:
    """The innermost line of a traceback that is in a file."""
    return next((line.strip() for line in reversed(traceback.splitlines()) if line.lstrip().startswith("File ")), "")


def _finding(tree: Tree, kind: Kind, definition: str, seq: int | None, *, reason: str = "", **texts: str) -> Finding:
    """The finding about a run; `reason` is the reason for which it would be parked."""
    what = texts.pop("what", "")
    if len(what) > WHAT_CHARACTERS_MAX:
        what = f"{what[:WHAT_CHARACTERS_MAX]}..."
    is_known = tree.is_parked and tree.reason == reason
    return Finding(run_id=tree.id, kind=kind, definition=definition, seq=seq, what=what, is_known=is_known, **texts)


def _stopped(tree: Tree, execution: Execution, park: Park) -> Finding:
    """The code cannot go on with the journal."""
    assert execution.parked_for is not None
    (error, number), facts = execution.parked_for, execution.park_facts
    frame = execution.frames.get(number) or execution.frames.get(0)
    definition = tree.definition if frame is None else f"{frame.spec.name}@{frame.spec.version}"
    seq = facts.get("seq", execution.events - 1)
    if park.lacks:
        what = f"the run has taken the change {park.lacks!r}, which this code does not know"
        return _finding(tree, Kind.DECLINED, definition, seq, what=what, reason=park.reason)
    if issubclass(error, DivergenceError):
        journal, code = facts["journal"], facts["asked"]
        return _finding(tree, Kind.DIVERGES, definition, seq, journal=journal, code=code, reason=park.reason)
    if issubclass(error, UnreadableError):
        what = f"{facts['what']} cannot be read as {facts['type_name']}: {facts['reason']}"
        return _finding(tree, Kind.UNREADABLE, definition, seq, what=what, reason=park.reason)
    if issubclass(error, WorkflowNotFoundError):
        what = f"this code does not define {facts['name']}@{facts['version']}, which {definition} has called"
        return _finding(tree, Kind.UNDEFINED, definition, seq, what=what, reason=park.reason)
    return _finding(tree, Kind.STOPS, definition, seq, what=park.reason, reason=park.reason)


def _differences(tree: Tree, execution: Execution) -> Iterator[Finding]:
    """Calls with other arguments: one finding for each name, however often it is called."""
    names: set[tuple[str, str]] = set()
    for each in execution.differences.values():
        name = (each.definition, base_of(each.call))
        if name not in names:
            names.add(name)
            yield Finding(
                run_id=tree.id,
                kind=Kind.ARGUMENTS,
                definition=each.definition,
                seq=each.seq,
                what=f"calls {name[1]} with other arguments",
            )


def base_of(call: str) -> str:
    """The name of a call, without the task that makes it and without how often it was made."""
    return call.rpartition("/")[2].partition("#")[0]
