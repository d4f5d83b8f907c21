"""The values that are written to a store: a change of one tree, with everything that it carries, and messages to runs.

What a store makes of these is its contract (`outlive._kernel.store.contract`), from which all others import them.
"""

from __future__ import annotations

import enum

import msgspec

from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Failure, Payload, Run, RunStatus
from outlive._kernel.model.bounds import UNBOUND, Bounds
from outlive._kernel.model.payload import Blob
from outlive._kernel.store.audit import Action
from outlive._kernel.store.streams import StreamLines


class Outcome(enum.Enum):
    """The outcome of one change."""

    COMMITTED = "committed"
    CONFLICT = "conflict"
    MUST_WAIT = "must wait"
    """A new run wants to begin at once (`Change.eager`), and its queue does not allow that now: nothing was written."""


class MessageKind(enum.Enum):
    """The kinds of messages to a run."""

    SIGNAL = "signal"
    CANCEL = "cancel"
    RESUME = "resume"
    PAUSE = "pause"
    """The run is to begin nothing more; `name` says who wants that, and why."""
    SKIP = "skip"
    """A step in flight is not to be called again; `name` is its call, `payload` its result."""
    ENDED = "ended"
    """A run that this one started detached, or watches, has ended."""
    CHANGE = "change"
    """A person wants other tags or another deadline; `name` is the JSON of that."""
    DECISION = "decision"
    """A person decided on an approval; `name` is the call of the request."""
    ASK = "ask"
    """A question that the run answers once. It always has a key, and the answer is kept with the key."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Something sent to a run, on its way into the inbox."""

    run_id: str
    kind: MessageKind
    at: int
    name: str = ""
    key: str = ""
    """Two messages to one tree with the same non-empty key are one message, also after it was consumed."""
    payload: Payload | None = None
    ended: Ended | None = None
    blobs: tuple[Blob, ...] = ()
    """Blobs that the payload refers to; stored if and only if the message is accepted."""
    audit: Action | None = None
    """An entry for the audit log; written if and only if the message is accepted."""
    bounds: Bounds = UNBOUND
    """The runs that the sender may know: a tree whose root is not within these bounds is unknown to it."""


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How another run ended."""

    run_id: str
    status: RunStatus
    result: Payload | None = None
    failure: Failure | None = None
    workflow: str = ""
    """The workflow of that run; with its version it says which type the result has. Earlier versions
    left it empty for the run that started that one."""
    version: int = 0
    is_refusal: bool = False
    """Whether there is no such end to wait for: `failure` says why."""


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """A tree that wants to hear of the end of a root run of another tree."""

    run_id: str
    """The run whose end is waited for."""
    watcher: str
    """The root run of the tree that waits."""
    key: str
    """The key of the message about the end."""

    def message(self, run: Run, *, at: int) -> Message:
        """The message about the end of that run."""
        return Message(run_id=self.watcher, kind=MessageKind.ENDED, at=at, key=self.key, ended=ended_of(run))


def ended_of(run: Run) -> Ended:
    """How a run ended, by its row."""
    return Ended(run.id, run.status, result=run.result, failure=run.failure, workflow=run.workflow, version=run.version)


def has_final_end(run: Run) -> bool:
    """Whether a run has ended and its id does not go on: then its watchers hear of its end."""
    return run.status.is_terminal and run.status is not RunStatus.CONTINUED


class Delivery(enum.Enum):
    """The outcome of one message."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    """A message with this key was accepted before."""
    FINISHED = "finished"
    UNKNOWN_RUN = "unknown run"
    FULL = "full"


def judge(*, is_key_seen: bool, is_over: bool, waiting: int, messages_max: int) -> Delivery:
    """Decide about a message to an existing run. (PostgreSQL decides in functions/put_messages.sql.)"""
    # A sender that asks again, because it never heard the answer, learns that all is well, also after the end.
    if is_key_seen:
        return Delivery.DUPLICATE
    if is_over:
        return Delivery.FINISHED
    return Delivery.FULL if waiting >= messages_max else Delivery.ACCEPTED


class InboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it lies in the inbox."""

    id: int
    run: int
    """The number in its tree of the run that it is for."""
    kind: MessageKind
    at: int
    name: str = ""
    key: str = ""
    payload: Payload | None = None
    ended: Ended | None = None
    fault: str = ""
    """The fault of the row, if it is damaged: then the other fields hold as much as could be read."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a message that wants one; written once, never changed, and found by the key of the message."""

    key: str
    result: Payload | None = None
    failure: Failure | None = None
    fault: str = ""
    """The fault of the stored answer, if it is damaged: then `failure` says so too."""


class MessageRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is answered and becomes no event."""

    journal: int
    message: int
    """Its id in the inbox."""
    answer: Answer


class ItemResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one item of a batch run; recorded once, never changed."""

    run: int
    index: int
    result: Payload | None = None
    failure: Failure | None = None
    fault: str = ""
    """The fault of the row, if it is damaged: then `failure` says so too."""


class Forgotten(msgspec.Struct, frozen=True):
    """The rows to delete because a snapshot in the journal replaces them, or a first event that is written again before
    the run begins."""

    before: int
    """The seq of the snapshot or of that first event: events before it go."""
    below: int
    """Child runs with a number below this one go, with their items, tags and inbox, which wakes no run any more. They
    have ended."""


class Change(msgspec.Struct, kw_only=True):
    """Everything that one tree has to say at one moment; commits as a whole or not at all."""

    journal: int
    """The handle of the journal; 0 creates a new one, for the root run in `runs`."""
    after: int
    """The seq of the last event that the writer knows; -1 for a new journal, whose first row may have any seq: a tree
    that was brought here from another store may begin with a snapshot."""
    prior: int | None = None
    """The checksum of that event, which must be that of the row in the store: the seq alone does not say whose row it
    is when the store has gone back to an earlier state. None where `after` is -1, and nowhere else: a change that
    follows a row and does not name it conflicts."""
    rows: list[Row]
    """At least one: every change proves by the next seq that it may be written."""
    runs: list[Run] = []
    """Run rows that changed, whole. Their tags count for new rows, and for those in `retagged`."""
    retagged: list[int] = []
    """Numbers of runs in `runs` that have other tags than before: they are found by these now, and by no others."""
    requeued: bool = False
    """Whether the root in `runs` is of another queue than before, has another key there, or another priority."""
    renames: list[Run] = []
    """Rows of ended trees that take another id, before `runs` are written: they make room for a new run of the same id.
    A row whose tree has not ended stays as it is. If a new id is taken by another run, the change conflicts."""
    consumed: list[int] = []
    """Inbox messages that these rows made facts."""
    blobs: list[Blob] = []
    keys: list[str] = []
    """For a new journal: keys of messages that its tree has seen in another store."""
    answers: list[Answer] = []
    """Answers to messages that this tree has accepted, by their keys, each once in a commit; a key that has an answer,
    or that the tree has not seen, is left as it is."""
    items: list[ItemResult] = []
    streams: list[StreamLines] = []
    """Items that workflows of the tree emitted because of these rows."""
    rings: str = ""
    """The id of the root run, if readers that follow it in other processes (`Store.follow`) are to look at it; empty:
    there is nothing for them in this change."""
    starts: list[Change] = []
    """New trees that exist if and only if this change does; an id that is taken already is left as it is. But a change
    conflicts if one of its starts is a successor (`successor_of`) that cannot be created: no tree ends without it."""
    messages: list[Message] = []
    """Messages to other trees, accepted if and only if this change commits; their outcome does not matter."""
    reopens: bool = False
    """Whether its tree has ended and goes on with these rows, `after` being the event that ended it. It conflicts if
    the tree has not ended."""
    freed_keys: list[str] = []
    """Keys of messages to this tree that were taken back, with their answers: the next message with such a key is a new
    one."""
    forgets: Forgotten | None = None
    """The rows to delete when everything else is written; never rows at or behind the last snapshot among `rows`. The
    fence holds all the same: a writer conflicts if the event at its `after` was deleted, and nothing behind an event
    that stands was deleted."""
    is_guarded: bool = False
    """Whether this journal forgets now and then. Its writers come one after the other: a writer may not look for its
    `after` before, and write after, another one has written and forgotten what stands in its way."""
    successor_of: int = 0
    """For a new journal: the handle of an ended one, whose message keys, with their answers, and messages waiting for
    its root run move over. A tree that has not ended keeps what it has. What the successor finds in its inbox makes it
    due at once."""
    lives_on: bool = False
    """Whether a successor is another run of the same id, begun after the end of the run before, and not its next
    generation. Of that run it gets the signals and asks that wait, the keys of signals, and the keys of asks that are
    answered or wait. Everything else, the streams among it, stays with the run before."""
    eager: str = ""
    """For a new journal: the queue in which its root run begins without getting in line. It may if nothing is limited
    or paused there, and no run is in line."""
    audit: list[Action] = []
    """Entries for the audit log; written if and only if this change is."""
