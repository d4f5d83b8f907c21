"""What a script means for a tree as it stands now: the changes that a worker would commit.

A change made here names trees by number and messages by name; a player puts in the handles and ids of its store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from outlive._kernel.journal.codec import salt_of, seal
from outlive._kernel.journal.event import (
    AnyEvent,
    ApprovalRequested,
    RunCancelled,
    RunChanged,
    RunContinued,
    RunCreated,
    RunFailed,
    RunParked,
    RunPublished,
    RunReleased,
    RunResumed,
    RunRetried,
    RunSucceeded,
    RunSuspended,
    RunTagged,
    RunTimedOut,
    SnapshotTaken,
    StepSucceeded,
)
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Failure, Payload, Run, Wait, child_id
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.wait import WaitKind
from outlive._kernel.store.contract import Answer, Change, Forgotten, ItemResult, Message
from proof.differential.oracle import Oracle
from proof.differential.streams import lines_of
from proof.differential.words import Letter, NewTree, Write
from proof.differential.world import Tree, World

WORKFLOW = "play"
CHILDREN = ("child", "outlive.batch.step:child", "child")
"""The workflows of children; one of them is a run that the engine makes for itself."""
QUEUE = "mill"
ASSIGNEES = (("ann",), ("bob", "ann"), ())
SLEEP_MICROSECONDS = 15_000_000


class Draft(msgspec.Struct, kw_only=True):
    """A change in the words of a script."""

    change: Change
    """With numbers of trees for handles."""
    consumed: tuple[str, ...] = ()
    starts: list[Draft] = []


@dataclass
class Known:
    """What a writer knows of its tree."""

    tail: int
    runs: dict[int, Run]
    crc: int | None
    """The checksum of the row there."""
    births: int
    """The highest number that a child has had: no other one gets it again, also when it is forgotten."""


@dataclass
class Drafter:
    """Makes the changes of one operation, one after the other: a writer knows what it has written itself."""

    oracle: Oracle
    _ahead: dict[int, Known] = field(default_factory=dict)
    """Trees as they are if their last change here is written."""

    def draft(self, part: NewTree | Write) -> Draft:
        """The change that a part of a script means as things stand."""
        return _plant(part, self.oracle) if isinstance(part, NewTree) else self._extend(part)

    def _extend(self, write: Write) -> Draft:
        oracle, now = self.oracle, self.oracle.now()
        tree = tree_of(oracle.world, write.tree)
        if tree is None:
            lost = StepSucceeded(at=now, call="step", result=value("lost"))
            rows = [seal(lost, salt=salt_of(write.tree), seq=1)]
            return Draft(change=Change(journal=write.tree, after=0, prior=0, rows=rows))
        after = max(-1, tree.tail + write.lag)
        known = self._ahead.get(write.tree)
        if known is None or known.tail != after or write.lag <= 0:
            known = Known(after, dict(tree.runs), _crc_of(tree, after), tree.births)
        prior = _named(write, tree, known)
        change = Change(journal=write.tree, after=after, prior=prior, rows=[], is_guarded=write.is_guarded)
        change.reopens, change.freed_keys = write.reopens, list(write.freed)
        change.answers = [answer_of(key, number) for key, number in write.answers]
        _move(change, write, known, now)
        self._ahead[write.tree] = known
        change.blobs = [blob(each) for each in write.blobs]
        # A change has no items of a run that is not there.
        there = {*known.runs, *(run.number for run in change.runs)}
        change.items = [item_of(run, index) for run, index in write.items if run in there]
        change.streams = lines_of(write.lines, dict.fromkeys(there))
        change.messages = [message_of(letter, now) for letter in write.letters]
        return Draft(
            change=change,
            consumed=write.consumed,
            # A tree goes on as a new one when it knows all its children: one that is ahead of the oracle does not yet.
            starts=[
                _plant(start, oracle, known.runs)
                if start.successor_of
                else _plant(start, oracle, notify=known.runs[0].id)
                for start in write.starts
                if not (start.successor_of and write.lag)
            ],
        )


def _crc_of(tree: Tree, seq: int) -> int | None:
    """The checksum of a row, or of the last one for a row that is not there yet."""
    return next((row[2] for row in reversed(tree.rows) if row[0] <= seq), None)


def _named(write: Write, tree: Tree, known: Known) -> int | None:
    """The checksum that a change states."""
    match write.names:
        case "another":
            return (known.crc or 0) ^ 1
        case "none":
            return None
        case "earlier":
            return _crc_of(tree, known.tail - 1)
        case _:
            return known.crc


def _move(change: Change, write: Write, known: Known, now: int) -> None:
    """Put what happens into a change, and go on with it."""
    fold = Fold(known.runs[0].root_id)
    fold.runs = known.runs
    runs: dict[int, Run] = {}
    for move in write.moves:
        known.tail += 1
        if move == "forget":
            change.forgets = Forgotten(known.tail, _below(fold, known.births, write.keeps))
            kept = {number: run for number, run in fold.runs.items() if number >= change.forgets.below}
            event: AnyEvent = _snapshot(fold.root, known.tail, now)
        else:
            kept, event = {}, event_of(move, fold, known.births, now)
        change.rows.append(row := seal(event, salt=salt_of(fold.root.nonce), seq=known.tail))
        known.crc = row[2]
        if isinstance(event, RunTagged | RunChanged):
            change.retagged.append(event.run)
        if (run := fold.apply(event)) is not None:
            runs[run.number] = run
            known.births = max(known.births, run.number)
        # A snapshot is taken when no child is open; to a store it is all the same.
        fold.runs |= kept
    known.runs = fold.runs
    change.runs = list(runs.values())


def _below(fold: Fold, births: int, keeps: int) -> int:
    """Children below this number are forgotten: they have ended, and the youngest of those may stay."""
    still_open = [run.number for run in fold.runs.values() if run.number and not run.status.is_terminal]
    return max(1, min([births + 1, *still_open]) - keeps)


def _snapshot(root: Run, seq: int, now: int) -> SnapshotTaken:
    """The event that stands for all that a tree has so far."""
    created = RunCreated(
        at=root.created_at,
        workflow=root.workflow,
        version=root.version,
        input=value(root.id),
        nonce=root.nonce,
        tags=root.tags,
        notify=root.parent_id or "",
        slots=root.slots,
    )
    return SnapshotTaken(
        at=now,
        created=created,
        events=seq,
        worker=root.owner,
        epoch=root.epoch,
        payload=value({"state": seq}),
        attempts=root.attempts,
        wake_at=root.wake_at,
        published=root.published,
    )


def _plant(new: NewTree, oracle: Oracle, ending: dict[int, Run] | None = None, *, notify: str = "") -> Draft:
    event = RunCreated(
        at=oracle.now(),
        workflow=WORKFLOW,
        version=new.version,
        input=value(new.id),
        nonce=new.number,
        # A store may forget a session that has ended and owns nothing.
        worker=new.worker if oracle.is_live(new.worker) else "",
        tags=new.tags,
        notify=notify,
        begin_by=oracle.now() + SLEEP_MICROSECONDS if new.version == 2 else 0,
        slots=1 + new.version % 2,
    )
    fold = Fold(new.id)
    fold.apply(event)
    rows = [seal(event, salt=salt_of(new.number), seq=0)]
    change = Change(journal=0, after=-1, rows=rows, runs=[fold.root], successor_of=new.successor_of)
    change.is_guarded, change.lives_on = new.is_guarded, new.lives_on
    change.blobs = [blob(each) for each in new.blobs]
    if new.aside is not None:
        number, name = new.aside
        tree = tree_of(oracle.world, number)
        runs = ending or (tree.runs if tree else {})
        change.renames = [_renamed(run, number, name) for run in runs.values()]
    return Draft(change=change)


def _renamed(run: Run, number: int, name: str) -> Run:
    parent = run.parent_id
    if run.number and parent is not None:
        parent = name + parent.removeprefix(run.root_id)
    return replace(run, journal=number, id=child_id(name, run.number), root_id=name, parent_id=parent)


def event_of(move: str, fold: Fold, births: int, now: int) -> AnyEvent:
    """The event that a move of a script is for this tree."""
    open_children = [run.number for run in fold.runs.values() if run.number and not run.status.is_terminal]
    seconds, newest = now // MICROSECONDS, max(fold.runs)
    tags = ({"size": "x"}, {"colour": "red"}, {})[seconds % 3]
    published = RunPublished(at=now, run=newest, payload=value({"at": now}))
    tagged = RunTagged(at=now, run=newest, call="@tags", tags=tags)
    changed = RunChanged(at=now, run=newest, tags=tags, moves_deadline=not newest, timeout_at=now + seconds)
    events: dict[str, AnyEvent] = {
        "suspend": RunSuspended(at=now, waits=(Wait(WaitKind.SIGNAL, "go"),)),
        "sleep": RunSuspended(at=now, waits=(Wait(WaitKind.TIMER, "@sleep"),), wake_at=now + SLEEP_MICROSECONDS),
        "park": RunParked(at=now, reason="tired"),
        "resume": RunResumed(at=now),
        "ask": ApprovalRequested(
            at=now, run=newest, call="@approval", name="ok", payload=value({}), assignees=ASSIGNEES[seconds % 3]
        ),
        "release": RunReleased(at=now),
        "publish": (published, tagged, published, changed)[seconds % 4],
        "succeed": RunSucceeded(at=now, result=value([now])),
        "fail": RunFailed(at=now, failure=Failure("app.Broken", "no", ["no"], {"code": 7})),
        "cancel": RunCancelled(at=now, reason="enough"),
        "time out": RunTimedOut(at=now),
        "retry": RunRetried(at=now, reason="better now"),
        "go on": RunContinued(at=now, workflow=WORKFLOW, version=1),
        "spawn": RunCreated(
            at=now,
            run=births + 1,
            workflow=CHILDREN[births % len(CHILDREN)],
            version=1,
            input=value(1),
            call="child",
            tags={"size": "x"},
            queue=("", QUEUE)[births % 2],
            slots=1 + births % 3,
        ),
    }
    if move == "end" and open_children:
        return RunSucceeded(at=now, run=open_children[0], result=value("child"))
    return events.get(move) or StepSucceeded(at=now, call="step", result=value("ok"))


def tree_of(world: World, number: int) -> Tree | None:
    """The tree with this number."""
    return next((tree for tree in world.trees.values() if tree.runs[0].nonce == number), None)


def value(content: object) -> Payload:
    """A payload that holds this in place, as JSON."""
    return Payload(v=msgspec.Raw(msgspec.json.encode(content)))


def blob(number: int) -> Blob:
    """One of the few blobs of a script."""
    data = bytes([number]) * number
    return Blob(id=hashlib.sha256(data).hexdigest(), data=data)


def item_of(run: int, index: int) -> ItemResult:
    """Odd items fail."""
    if index % 2:
        return ItemResult(run=run, index=index, failure=Failure("app.Odd", "odd", [], {}))
    return ItemResult(run=run, index=index, result=value(index))


def answer_of(key: str, number: int) -> Answer:
    """Odd answers are failures."""
    if number % 2:
        return Answer(key=key, failure=Failure("app.Odd", "odd", [], {}))
    return Answer(key=key, result=value(number))


def message_of(letter: Letter, now: int) -> Message:
    """The message that is sent now."""
    blobs = [blob(letter.blob)] if letter.blob is not None else []
    payload = Payload(blob=blobs[0].id) if blobs else value(letter.name)
    return Message(
        run_id=letter.to,
        kind=letter.kind,
        at=now,
        name=letter.name,
        key=letter.key,
        payload=payload,
        blobs=tuple(blobs),
    )


def messages_of(letters: Sequence[Letter], now: int) -> list[Message]:
    """The messages that are sent now."""
    return [message_of(letter, now) for letter in letters]
