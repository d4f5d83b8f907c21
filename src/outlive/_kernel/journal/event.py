"""The vocabulary: every fact that a journal can hold.

Events are past tense, frozen, and carry `at` (microseconds since 1970 UTC) and `run` (the number of the run in
its tree, 0 for the root, left out of the bytes then). Two families:

* **facts the workflow sees**: they resolve what it awaits (`StepSucceeded`, `TimerFired`, `SignalReceived`, ...);
* **book-keeping** (`RunClaimed`, `RunSuspended`, `RunReleased`, `RunParked`, `RunResumed`, `AttemptFailed`,
  `StepDelayed`, `StepProgressed`, `StepEndedLate`): they say who runs it and what it waits for, move no workflow code
  and no workflow clock.

Old rows need no change for a new kind or for a new field with a default. The code does: a kind has a place in the
tables of `_kernel.journal.fold` and `_kernel.replay.feeding`, and more that CONTRIBUTING.md lists. Changing the
meaning of a stored field needs a new `FORMAT` and an upcast in `outlive._kernel.journal.codec`.
"""

from __future__ import annotations

from functools import cache
from typing import get_args

import msgspec

from outlive._kernel.model import Failure, Payload, RunStatus, Wait
from outlive._kernel.model.approval import OpenRequest
from outlive._kernel.model.under_way import Interrupted


class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True, tag_field="t"):
    """A fact in a journal."""

    at: int
    run: int = 0


class RunCreated(Event, frozen=True, tag=True):
    """A run began its life; for the root this is event 0 of the journal."""

    workflow: str
    version: int
    input: Payload
    nonce: int = 0
    """The nonce of the whole tree; 0 for a child."""
    call: str = ""
    """For a child: the call of its parent that started it."""
    parent: int = 0
    """For a child: the run that started it."""
    digest: int = 0
    timeout_at: int | None = None
    """Its deadline; with `timeout`, that of a run that begins when it is due."""
    timeout: int | None = None
    """How long it may take from when a worker begins it. None without a limit, in older journals, and for a child. The
    deadline of a child or a next generation is settled when it is created; that of a next generation is what is left of
    this for all of them, and a retry of it has all of it again."""
    begin_by: int = 0
    """When a worker must have begun it: else it fails, and no code of it runs. Not there for whenever."""
    tags: dict[str, str] = {}
    headers: dict[str, str] = {}
    """The headers that the code which started the tree gives to all of its runs; a child has those of its root."""
    worker: str = ""
    """The worker that created and claimed it in one step; empty when any worker may claim it."""
    notify: str = ""
    """The id of the run that started it detached and hears of its end."""
    generation: int = 0
    """How many runs of this id have gone on as the next one before it."""
    published: Payload | None = None
    """The object that the run before it showed to people: this run continues with it from its first line of code."""
    seed: int = 0
    """The seed of the random numbers in the history with which a fork begins; 0 where the nonce is the seed."""
    start_at: int = 0
    """When it is to begin, if that is later than its start."""
    queue: str = ""
    """The queue in which it waits for its turn."""
    queue_key: str = ""
    lead: int = 0
    """By how many microseconds its priority brings it forward in the line."""
    slots: int = 1
    """How many slots of its queue it takes."""
    frees_slot: bool = False
    """Whether it gives its slot in the queue back while it waits."""
    has_slot: bool = False
    """Whether it has the slot of the run that it goes on for."""
    before: int = 0
    """How many earlier first events it has replaced: each was of a start that became one run with this start."""
    begun_at: int = 0
    """When a worker began it, in a fork, whose journal has no claim of its origin. Else the first claim says it."""
    spends_names: bool = False
    """For the root: whether a call of this tree that is refused for its arguments uses up its identity. Journals of
    earlier releases have calls that do not, so their replay must encode arguments to know which call is which."""


class RunClaimed(Event, frozen=True, tag=True):
    """A worker took the tree over. Every earlier owner finds its next seq taken: this event is the fence."""

    worker: str
    epoch: int
    interrupted: bool = False
    """Whether an earlier owner lost it without letting go."""
    begins: bool = False
    """Whether no worker had the tree before: the clock of its root begins here. False in journals that are older than
    this field: their clock began with `RunCreated`."""


UNREAD_MAX = 200
"""How many signals that the code has not asked for a suspension names."""


class RunSuspended(Event, frozen=True, tag=True):
    """Nothing moves until one of the waits ends; no worker owns the tree."""

    waits: tuple[Wait, ...]
    wake_at: int | None = None
    gives_way: bool = False
    """Whether it gives its slot in its queue back, whatever the queue says, and gets in line again when it wakes up."""
    unread: tuple[str, ...] = ()
    """The places of signals that the code has not asked for, oldest first, at most `UNREAD_MAX`: the seq of each event,
    or the seq of a snapshot and a place there. Not in journals that are older than this field."""


class RunReleased(Event, frozen=True, tag=True):
    """Its worker let go of it in the middle of its work (a clean stop); any worker may go on at once."""

    reason: str = ""
    """Why its worker could not go on: newer code has moved it, or a step needs more time than the worker had. Empty
    after a clean stop."""
    moved_at: int = 0
    """With a reason: when the run last moved. It is due since then, however many workers have let go of it."""
    interrupted: bool = False
    """Whether its worker ended in the middle of a step, which the next one calls again: this counts like a worker that
    was lost. False in journals that are older than this field."""


class RunParked(Event, frozen=True, tag=True):
    """The run stopped with a reason that a person can act on."""

    reason: str


class RunResumed(Event, frozen=True, tag=True):
    """A person, or new code, lets a parked run go on."""


class RunRetried(Event, frozen=True, tag=True):
    """A person lets a run that had failed, timed out or was cancelled go on: the facts that ended it are taken back.

    It stands behind the end of the tree. One for the root, and one for each child that goes on with it.
    """

    undone: tuple[int, ...] = ()
    """For the root: the events that are taken back, ascending. A replay passes over them; the run rows keep them."""
    rested: int = 0
    """For the root: how long the tree had ended. Its timers stood still meanwhile."""
    since: int = 0
    """For the root: the first event in `undone` whose effect the code had seen. What is taken back before it are only
    attempts of a step."""
    next_number: int = 0
    """For the root: the number of the next child that the code asks for from `since` on. A child that was taken back
    keeps its number."""
    timeout_at: int | None = None
    """The new deadline of the run; with `timeout`, if a worker claims it at once."""
    timeout: int | None = None
    """How long the run may take from the next claim on."""
    rests: bool = False
    """For the root: whether its clock and its timers stand still until the next claim. False in older journals: their
    clock goes on here."""
    approvals: tuple[OpenRequest, ...] | None = None
    """Requests for approval that are open again: the end of the run had closed them. None in older journals, and in the
    history of a fork."""
    reason: str = ""


class RunForked(Event, frozen=True, tag=True):
    """Up to here this is the history of another run, edited; from here on this run has a life of its own."""

    origin: str
    """The run that was forked."""
    events: int
    """How many events of its journal were looked at: the rest is not part of this history."""
    seed: int
    """The seed of the random numbers from here on."""
    rested: int = 0
    """How long ago the last event before it is. The timers stood still meanwhile."""
    timeout_at: int | None = None
    """The deadline of the run; with `timeout`, if a worker claims it at once."""
    timeout: int | None = None
    """How long the run may take from the next claim on."""
    rests: bool = False
    """Whether the clock and the timers of the root stand still until the next claim; see `RunRetried`."""
    reason: str = ""


class StepSucceeded(Event, frozen=True, tag=True):
    """A step returned; its result will never be computed again."""

    call: str
    result: Payload
    digest: int = 0
    """CRC-32 of the arguments, so that a replay sees that the code now asks with other ones."""
    attempt: int = 1
    skipped: bool = False
    """Whether a person gave the result, and the step did not return it."""
    took: int = 0
    """How long this attempt was, by the clock of its worker; not there if that is not known."""
    arguments: Payload | None = None
    """Its arguments by name, for people, if the engine records them; redacted and cut."""


class StepFailed(Event, frozen=True, tag=True):
    """A step failed for good: its retry budget is used up or the error is not worth another attempt."""

    call: str
    failure: Failure
    digest: int = 0
    attempt: int = 1
    took: int = 0
    """How long this attempt was, by the clock of its worker; not there if that is not known."""
    arguments: Payload | None = None
    """Its arguments by name, for people, if the engine records them; redacted and cut."""


class AttemptFailed(Event, frozen=True, tag=True):
    """One attempt of a step failed and the next one comes at `retry_at`: budget and clock survive a crash."""

    call: str
    failure: Failure
    attempt: int
    retry_at: int
    digest: int = 0
    first_at: int = 0
    """When the first attempt began, if the policy limits the time since then (`elapsed_max`)."""
    took: int = 0
    """How long this attempt was, by the clock of its worker; not there if that is not known."""
    arguments: Payload | None = None
    """Its arguments by name, for people, if the engine records them; redacted and cut."""


class StepDelayed(Event, frozen=True, tag=True):
    """An attempt of a step was not begun: a rate limit or a breaker lets it ask again at `until_at`. No attempt is used
    up, and an intent is taken back."""

    call: str
    until_at: int
    by: str
    """The rate limit or the breaker for which the attempt waits, in words for people."""
    has_turn: bool = False
    """Whether it is lined up in its rate limit: none that comes later goes first."""
    digest: int = 0


class StepProgressed(Event, frozen=True, tag=True):
    """A running step saved how far it came; the next attempt is given what was saved last."""

    call: str
    progress: Payload


class StepIntended(Event, frozen=True, tag=True):
    """An attempt of a step that may be called only once is about to begin: a worker that finds this without an outcome
    must not call it again."""

    call: str
    attempt: int = 1
    """0 takes an intent back: the attempt was not begun."""
    digest: int = 0


class StepEndedLate(Event, frozen=True, tag=True):
    """An attempt of a step has ended after its run had given it up: its time was over, or the call was cancelled. A
    fact for people: the workflow got another outcome, and keeps that."""

    call: str
    attempt: int = 1
    result: Payload | None = None
    failure: Failure | None = None
    """The exception that the function raised, or the reason why its result cannot be stored."""


class TimerFired(Event, frozen=True, tag=True):
    """A timer of the workflow is due."""

    call: str


class SignalReceived(Event, frozen=True, tag=True):
    """A message of the world reached the run; it is consumed now or buffered, first in first out by name."""

    name: str
    payload: Payload
    key: str = ""


class AskReceived(Event, frozen=True, tag=True):
    """A question reached the run; it is open until the run answers it."""

    name: str
    payload: Payload
    key: str
    """The key that its sender gave it; the name and the key together identify an ask of this run."""
    checked: bool = False
    """Whether its body was read and validated before this event was written."""
    forks: int = 0
    """How many forks ago it was asked: a run that this one was forked from has to answer, unless it is 0."""


class AskAnswered(Event, frozen=True, tag=True):
    """The run answered a question; the answer was given to the sender in the same transaction."""

    call: str
    name: str
    key: str
    payload: Payload | None = None
    failure: Failure | None = None
    """Instead of a payload: the run refused it, or could not read it."""
    digest: int = 0
    forks: int = 0
    """How many forks ago the question was asked: no sender gets this answer, unless it is 0."""


class CancelRequested(Event, frozen=True, tag=True):
    """A client, or the parent, wants the run to stop."""

    reason: str = ""


class DetachedStarted(Event, frozen=True, tag=True):
    """The run started another tree; that run was created in the same transaction."""

    call: str
    run_id: str
    digest: int = 0


class DetachedEnded(Event, frozen=True, tag=True):
    """A run that this one started detached, or waits for, has ended."""

    run_id: str
    status: RunStatus
    result: Payload | None = None
    failure: Failure | None = None
    workflow: str = ""
    """The workflow of that run; with its version it says which type the result has. In journals of earlier versions it
    is empty if this run started that one."""
    version: int = 0
    is_refusal: bool = False
    """Whether there is no such end to wait for: `failure` says why."""


class DetachedCancelled(Event, frozen=True, tag=True):
    """The run asked a tree that it started detached to stop; the message went out in the same transaction."""

    call: str
    run_id: str


class ApprovalRequested(Event, frozen=True, tag=True):
    """The run asks people for a decision."""

    call: str
    name: str
    payload: Payload  # JSON of `ApprovalRequest` in `_kernel.model.approval`.
    """The request: `title`, `form` (a JSON Schema), `assignees`, `deadline_at`, `remind_every`, `escalate_at` and
    `escalate_to`, as far as they are given."""
    digest: int = 0
    assignees: tuple[str, ...] | None = None
    """The people who are asked: for the row of the run, by which it is found. None in journals that are older than this
    field."""


class ApprovalEscalated(Event, frozen=True, tag=True):
    """There was no decision in time: others are asked too."""

    call: str
    approval: str
    """The call of the request."""
    payload: Payload
    """The list of all who may decide now."""
    digest: int = 0
    assignees: tuple[str, ...] | None = None
    """The names in the list, for the row of the run."""


class ApprovalDecided(Event, frozen=True, tag=True):
    """A person decided; there is one decision for each request."""

    approval: str
    """The call of the request."""
    payload: Payload  # JSON of `Decision` in `_kernel.model.approval`.
    """The decision: `approved`, `by`, `at`, `comment` and `form`."""


class ApprovalClosed(Event, frozen=True, tag=True):
    """The run no longer waits for the decision: its time is over, or the run went another way."""

    call: str
    approval: str
    """The call of the request."""


class MessageSetAside(Event, frozen=True, tag=True):
    """The code could not read a message, and the wait that had taken it goes on: with the next signal of the same name,
    or with the same request asked again."""

    call: str
    """Empty when its row in the inbox was damaged, and no code has seen it."""
    name: str
    """The name of the signal, or of the approval."""
    message: str
    """Where the message is in the journal: the seq of its event, or the seq of a snapshot and its place there. One that
    was damaged in the inbox never came into the journal: `inbox/` and its id there."""
    reason: str
    approval: str = ""
    """For a decision: the call of the request that it was on."""
    payload: Payload | None = None
    """The payload of the message, in a snapshot; otherwise None, because `message` says where the payload is."""


class PromiseMade(Event, frozen=True, tag=True):
    """The run waits, or will wait, for a value that a program outside settles: a signal named by this call."""

    call: str
    payload: Payload  # JSON of `PromiseTerms` in `_kernel.model.promise`.
    """The `type` of the value and its JSON `schema`."""
    digest: int = 0


class RunPublished(Event, frozen=True, tag=True):
    """The run shows this object to people."""

    payload: Payload
    call: str = ""
    """Empty when a step said it."""
    digest: int = 0


class RunChanged(Event, frozen=True, tag=True):
    """A person changed the run from outside: its tags, its deadline, or both."""

    tags: dict[str, str] | None = None
    """All that it has now; None if they are as they were."""
    moves_deadline: bool = False
    """Whether it has another deadline, or none, from now on."""
    timeout_at: int | None = None
    """The new deadline; None for none."""
    reason: str = ""


class RunTagged(Event, frozen=True, tag=True):
    """The run has other tags from now on."""

    call: str
    tags: dict[str, str]
    """All that it has now."""


class PatchTaken(Event, frozen=True, tag=True):
    """The run reached a change of its code while it was new: it takes the new way, now and in every replay."""

    call: str
    asked: int = 0
    """CRC-32 of what the code waited for then: the beginning of the new way. Code that does not ask for the mark and
    waits for something else does not know the change. 0 in journals that are older than this field."""


class StateLeft(Event, frozen=True, tag=True):
    """A machine left a state that is more than one step: its data and the state it goes to."""

    call: str
    payload: Payload  # JSON of `StateResult` in `_features.machines.wire`.
    """Where it goes (`to`), its `data`, how far a stepped state came (`cursor`), and the seconds until the next look of
    a poll (`wait`)."""
    digest: int = 0


class SnapshotTaken(Event, frozen=True, tag=True):
    """All that came before, in one event: the rows before it went in the transaction that wrote it, and with them the
    child runs, which have all ended."""

    created: RunCreated
    """How the root run began: the fields of its `RunCreated`."""
    events: int
    """How many events it stands for; its own seq."""
    worker: str
    epoch: int
    payload: Payload
    """JSON of `outlive._kernel.replay.snapshot.Standing`."""
    attempts: int = 0
    wake_at: int | None = None
    published: Payload | None = None
    signals: tuple[SignalReceived, ...] = ()
    """Signals that no code has taken, oldest first."""
    asks: tuple[AskReceived, ...] = ()
    """Asks without an answer, by name, oldest first."""
    set_aside: tuple[MessageSetAside, ...] = ()
    """The last messages that the code could not read."""
    retried: int = 0
    """The number of the last event that brought the run back after its end, if there is one."""


class RunContinued(Event, frozen=True, tag=True):
    """The run ended and goes on as a new one, with the same id and a fresh journal, created in the same
    transaction."""

    workflow: str
    version: int
    follows: int = 0
    """The digest of the rows before this one; see `RunSucceeded`."""


class RunSucceeded(Event, frozen=True, tag=True):
    """The workflow returned."""

    result: Payload
    follows: int = 0
    """For a root: the digest of the rows before this one, as the worker whose code returned knew them
    (`_kernel.journal.codec.next_digest`). It proves that the result belongs to that journal. 0 for a child, in older
    journals, and where the result did not come from a replay."""
    unread: tuple[str, ...] = ()
    """For a root: where the signals are in the journal that no code took. A run that begins under its id after this end
    gets them (`on_conflict="attach_open"`)."""


class RunFailed(Event, frozen=True, tag=True):
    """The workflow raised."""

    failure: Failure
    follows: int = 0
    """The digest of the rows before this one; see `RunSucceeded`."""
    unread: tuple[str, ...] = ()
    """The signals that no code took; see `RunSucceeded`."""


class RunCancelled(Event, frozen=True, tag=True):
    """The run ended because it was cancelled."""

    reason: str = ""
    interrupted: tuple[Interrupted, ...] = ()
    """The steps that its cancellation interrupted, as far as the worker that ended it knows: of a child its own, of the
    root those of the whole tree. Each has `call`, `run_id`, `attempt`, `attempts_max`, `since_at` and `worker`."""
    unread: tuple[str, ...] = ()
    """The signals that no code took; see `RunSucceeded`."""


class RunTimedOut(Event, frozen=True, tag=True):
    """The run did not end in time."""

    interrupted: tuple[Interrupted, ...] = ()
    """The steps that its deadline interrupted, as those of a cancellation."""
    unread: tuple[str, ...] = ()
    """The signals that no code took; see `RunSucceeded`."""


AnyEvent = (
    RunCreated
    | RunClaimed
    | RunSuspended
    | RunReleased
    | RunParked
    | RunResumed
    | RunRetried
    | RunForked
    | StepSucceeded
    | StepFailed
    | AttemptFailed
    | StepDelayed
    | StepProgressed
    | StepIntended
    | StepEndedLate
    | TimerFired
    | SignalReceived
    | AskReceived
    | AskAnswered
    | CancelRequested
    | DetachedStarted
    | DetachedEnded
    | DetachedCancelled
    | ApprovalRequested
    | ApprovalEscalated
    | ApprovalDecided
    | ApprovalClosed
    | MessageSetAside
    | PromiseMade
    | RunPublished
    | RunChanged
    | RunTagged
    | PatchTaken
    | StateLeft
    | SnapshotTaken
    | RunSucceeded
    | RunFailed
    | RunCancelled
    | RunTimedOut
    | RunContinued
)

First = RunCreated | SnapshotTaken
"""The events with which a journal can begin."""

Ending = RunSucceeded | RunFailed | RunCancelled | RunTimedOut | RunContinued


@cache
def payload_fields(kind: type[Event]) -> tuple[str, ...]:
    """The fields of a kind of event that may hold a payload; most have none or one."""
    fields = msgspec.structs.fields(kind)
    return tuple(each.name for each in fields if Payload in (each.type, *get_args(each.type)))


def payloads_of(event: Event) -> list[Payload]:
    """Every payload of an event; a snapshot holds those of other events too."""
    found = [it for name in payload_fields(type(event)) if isinstance(it := getattr(event, name), Payload)]
    if isinstance(event, SnapshotTaken):
        for inner in (event.created, *event.signals, *event.asks, *event.set_aside):
            found += payloads_of(inner)
    return found
