"""What an operation means as things stand: the same for everybody who plays it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from outlive._kernel.journal.codec import Row, salt_of, seal
from outlive._kernel.journal.event import StepSucceeded
from outlive._kernel.model import RunFilter, definition_key
from outlive._kernel.store.contract import Answer, Message, Watch, WorkerInfo
from outlive._kernel.store.streams import StreamAppend
from proof.differential.changes import WORKFLOW, Draft, Drafter, answer_of, messages_of, tree_of, value
from proof.differential.oracle import Oracle
from proof.differential.streams import lines_of
from proof.differential.words import Operation, Say


@dataclass(frozen=True)
class Plan:
    """An operation with all that depends on how things stand."""

    operation: Operation
    drafts: list[Draft]
    start: Draft | None
    messages: list[Message]
    wake_ups: Mapping[str, int]
    """Of the runs that can be claimed."""
    limit: int
    """Of a claim: the contract does not order runs that wake at the same instant, so it takes all of them or none."""
    orphans: tuple[int | None, float]
    """Of a claim: how many at most, and for how many seconds they are left alone."""
    behind: Row | None
    """Of a transaction: the row that its writer takes for the last one, be it there or not."""
    appends: list[StreamAppend] = field(default_factory=list)
    """To streams, with numbers of trees for handles."""
    refusals: list[tuple[int, str, Answer]] = field(default_factory=list)
    """The number of a tree, the name of a message, and its answer."""


def plan_of(operation: Operation, oracle: Oracle) -> Plan:
    """What the operation means now."""
    world, now = oracle.world, oracle.now()
    drafter = Drafter(oracle)
    drafts = [drafter.draft(part) for part in operation.changes]
    start = drafter.draft(operation.start) if operation.start else None
    claimable: list[tuple[int, int]] = []
    limit = operation.numbers[0] if operation.verb == "claim" else 0
    orphans_max, stale_seconds = operation.orphans or (None, 0)
    if operation.verb == "claim":
        claimable = oracle.list_claimable(definitions_of(operation), stale_seconds)
        if limit < len(claimable) and claimable[limit - 1][0] == claimable[limit][0]:
            limit = 100
        if orphans_max is not None and len({wake_at for wake_at, _ in claimable}) < len(claimable):
            limit, orphans_max = 100, None
    wake_ups = {world.trees[journal].runs[0].id: wake_at for wake_at, journal in claimable}
    messages = messages_of(operation.letters, now)
    behind = _behind(drafts[0], oracle, is_there=bool(operation.numbers[0])) if _has_behind(operation) else None
    return Plan(
        operation,
        drafts,
        start,
        messages,
        wake_ups,
        limit,
        (orphans_max, stale_seconds),
        behind,
        appends=[append for say in operation.says for append in _appends(say, oracle)],
        refusals=_refusals(operation, oracle) if operation.verb == "refuse" else [],
    )


def _appends(say: Say, oracle: Oracle) -> list[StreamAppend]:
    tree = tree_of(oracle.world, say.tree)
    runs = {0: None} if tree is None else dict.fromkeys(tree.runs)
    epoch = 1 if tree is None else tree.runs[0].epoch
    return [
        StreamAppend(journal=say.tree, epoch=epoch - say.epochs_ago, mark=say.mark, said=said)
        for said in lines_of(say.lines, runs)
    ]


def _refusals(operation: Operation, oracle: Oracle) -> list[tuple[int, str, Answer]]:
    """For messages with these names, which have keys; one that is not there any more is refused too."""
    refusals: list[tuple[int, str, Answer]] = []
    for name in operation.ids:
        trees = [tree for tree in oracle.world.trees.values() for message in tree.inbox if message.name == name]
        keys = [message.key for tree in trees for message in tree.inbox if message.name == name]
        number = trees[0].runs[0].nonce if trees else operation.numbers[0]
        if keys != [""]:
            refusals.append((number, name, answer_of(keys[0] if keys else "k1", len(refusals))))
    return refusals


def _has_behind(operation: Operation) -> bool:
    return operation.verb == "transact" and bool(operation.numbers)


def _behind(draft: Draft, oracle: Oracle, *, is_there: bool) -> Row | None:
    """The row that a change comes after, or one that might stand in its place."""
    tree, seq = tree_of(oracle.world, draft.change.journal), draft.change.after
    if tree is None:
        return None
    rows = [row for row in tree.rows if row[0] == seq and is_there]
    other = StepSucceeded(at=oracle.now(), call="step", result=value("other"))
    return rows[0] if rows else seal(other, salt=salt_of(tree.runs[0].nonce), seq=max(0, seq))


def definitions_of(operation: Operation) -> list[str]:
    """What the worker of a claim can run."""
    return [definition_key(WORKFLOW, version) for version in operation.numbers[1:]]


def filter_of(operation: Operation) -> RunFilter:
    """What a list asks for."""
    _, by_workflow, by_root, by_parent, by_owner, roots_only = operation.numbers
    finds = operation.finds
    return RunFilter(
        statuses=operation.statuses,
        workflow=WORKFLOW if by_workflow else None,
        root_id=operation.ids[0] if by_root else None,
        parent_id=operation.ids[0] if by_parent else None,
        owner=operation.worker if by_owner else None,
        roots_only=bool(roots_only),
        tags=operation.tags,
        since_at=int(finds["since_at"]) if "since_at" in finds else None,
        until_at=int(finds["until_at"]) if "until_at" in finds else None,
        ids=tuple(finds["ids"].split()) if "ids" in finds else (),
        version=int(finds["version"]) if "version" in finds else None,
        finished_since_at=int(finds["finished_since_at"]) if "finished_since_at" in finds else None,
        finished_until_at=int(finds["finished_until_at"]) if "finished_until_at" in finds else None,
        id_prefix=finds.get("id_prefix"),
        error=finds.get("error"),
        waiting_for=finds.get("waiting_for"),
        queue=finds.get("queue"),
        hides_internal="hides_internal" in finds,
        sleeps="sleeps" in finds,
        # The contract knows no filter with both.
        asks=None if "waiting_for" in finds else finds.get("asks"),
        overdue_at=int(finds["overdue_at"]) if "overdue_at" in finds else None,
    )


def watches_of(operation: Operation) -> list[Watch]:
    """The watches that are to be kept."""
    return [Watch(run_id=gaze.run, watcher=gaze.watcher, key=gaze.key) for gaze in operation.gazes]


def worker_of(operation: Operation, now: int) -> WorkerInfo:
    """The session that is hired."""
    return WorkerInfo(id=operation.worker, name="me", definitions=(WORKFLOW,), started_at=now, expires_at=0)
