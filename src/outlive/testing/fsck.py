"""Whether a store is whole: every row of every journal, and every run row against the fold of its journal.

The run rows are a fold of the journals and nothing else (design, section 3). Here that is proved from outside, with
the same `Fold` that the workers use and none of their code. One liberty is allowed: a message that waits in the inbox
may have moved the root's `wake_at` forward, because that is how it asks to be read.

The store may be in use. A tree that changed while it was looked at is looked at again; only a tree that stood still
and is wrong is a problem.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

import msgspec

from outlive._journal.codec import Row, open_row, salt_of
from outlive._journal.event import AnyEvent, RunClaimed, RunCreated
from outlive._journal.fold import Fold
from outlive._model import Payload, Run, RunFilter, child_id
from outlive._store.contract import PAGE_SIZE_MAX, Store
from outlive.errors import OutliveError

LOOKS_MAX = 10
"""A tree that moves is looked at again this often; then it is taken to be well, as it works."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it must be."""

    run_id: str
    what: str
    seq: int | None = None
    """The journal row, where there is one to blame."""

    def __str__(self) -> str:
        place = "" if self.seq is None else f" at event {self.seq}"
        return f"run {self.run_id}{place}: {self.what}"


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree as it lies in the store."""

    root: Run
    rows: list[Row]
    runs: list[Run]
    mail: int


async def check_store(store: Store) -> list[Problem]:
    """Look at everything in the store; empty if it is whole."""
    problems = []
    async for root in each_root(store):
        problems += await check_tree(store, root)
    return problems


async def check_tree(store: Store, root: Run) -> list[Problem]:
    """Look at one tree until it stands still."""
    problems: list[Problem] = []
    for _ in range(LOOKS_MAX):
        tree = await read_tree(store, root)
        problems = [*judge(tree), *await find_lost_blobs(store, tree)]
        again = await read_tree(store, root)
        if not problems or again == tree:
            return problems
    return problems


async def each_root(store: Store) -> AsyncIterator[Run]:
    """Every root run, newest first."""
    async for run in _each_run(store, RunFilter(roots_only=True)):
        yield run


async def _each_run(store: Store, wanted: RunFilter) -> AsyncIterator[Run]:
    before: tuple[int, str] | None = None
    while True:
        page = await store.list_runs(wanted, limit=PAGE_SIZE_MAX, before=before)
        for run in page:
            yield run
        if len(page) < PAGE_SIZE_MAX:
            return
        before = (page[-1].created_at, page[-1].id)


async def read_tree(store: Store, root: Run) -> Tree:
    """One tree, read in several steps; whoever compares two readings knows whether it stood still."""
    found = await store.find_run(root.id)
    runs = [run async for run in _each_run(store, RunFilter(root_id=root.root_id))]
    rows = await store.read_journal(root.journal)
    mail = await store.read_inbox([root.journal])
    return Tree(root=found or root, rows=rows, runs=runs, mail=len(mail.get(root.journal, ())))


def judge(tree: Tree) -> list[Problem]:
    """Everything that is wrong with one tree."""
    root_id = tree.root.root_id
    events, problems = _open(tree.rows, nonce=tree.root.nonce, run_id=root_id)
    if problems:
        return problems
    if not events:
        return [Problem(root_id, "has a row and no journal")]
    problems = _check_sequence(root_id, events)
    fold = Fold(root_id)
    for seq, event in enumerate(events):
        if _is_over(fold):
            problems.append(Problem(root_id, f"{type(event).__name__} stands after the end of the tree", seq))
            return problems
        try:
            fold.apply(event)
        except (AssertionError, KeyError) as error:
            return [*problems, Problem(root_id, f"{type(event).__name__} does not fit: {error!r}", seq)]
    return problems + _compare(tree, fold)


def _open(rows: Iterable[Row], *, nonce: int, run_id: str) -> tuple[list[AnyEvent], list[Problem]]:
    """The events, or each row that is damaged or missing."""
    salt = salt_of(nonce)
    events: list[AnyEvent] = []
    problems: list[Problem] = []
    expected = 0
    for row in rows:
        if row[0] != expected:
            problems.append(Problem(run_id, f"rows are missing: the next one is {row[0]}", expected))
        expected = row[0] + 1
        try:
            events.append(open_row(row, salt=salt, run_id=run_id))
        except OutliveError as error:
            problems.append(Problem(run_id, str(error), row[0]))
    return events, problems


def _check_sequence(root_id: str, events: list[AnyEvent]) -> list[Problem]:
    """A journal begins with its root, and each claim raises the epoch by one."""
    first = events[0]
    if not isinstance(first, RunCreated) or first.run:
        return [Problem(root_id, f"the journal begins with {type(first).__name__}", 0)]
    problems = []
    epoch = 1 if first.worker else 0
    for seq, event in enumerate(events):
        if isinstance(event, RunClaimed):
            if event.epoch != epoch + 1:
                problems.append(Problem(root_id, f"claimed as epoch {event.epoch} after epoch {epoch}", seq))
            epoch = event.epoch
    return problems


def _is_over(fold: Fold) -> bool:
    return 0 in fold.runs and fold.root.status.is_terminal


def _compare(tree: Tree, fold: Fold) -> list[Problem]:
    """Each row against the fold, and the tree against itself."""
    stored = {run.number: run for run in tree.runs}
    problems = [
        Problem(child_id(fold.root_id, number), "is in the journal and has no row")
        for number in fold.runs.keys() - stored
    ]
    for number, row in stored.items():
        told = fold.runs.get(number)
        if told is None:
            problems.append(Problem(row.id, "has a row and is not in the journal"))
            continue
        differences = _differences(
            row, told, may_be_woken=number == 0 and bool(tree.mail) and not told.status.is_terminal
        )
        if row.journal != tree.root.journal:
            differences.append(f"journal {row.journal} is not that of its root ({tree.root.journal})")
        problems += [Problem(row.id, difference) for difference in differences]
    if _is_over(fold):
        problems += [
            Problem(run.id, f"is {run.status.value} in a tree that has ended")
            for run in fold.runs.values()
            if not run.status.is_terminal
        ]
    return problems


def _differences(row: Run, told: Run, *, may_be_woken: bool) -> list[str]:
    """Where a row and the fold of its journal disagree."""
    differences = []
    for name in Run.__struct_fields__:
        if name == "journal":  # The handle is the store's, and the journal does not know it.
            continue
        found, wanted = getattr(row, name), getattr(told, name)
        if _plain(found) != _plain(wanted) and not (name == "wake_at" and may_be_woken and _is_earlier(found, wanted)):
            differences.append(f"{name} is {found!r} in the row and {wanted!r} in the journal")
    return differences


def _is_earlier(found: int | None, wanted: int | None) -> bool:
    return found is not None and (wanted is None or found <= wanted)


def _plain(value: object) -> object:
    """Payloads hold raw JSON, which compares by identity."""
    return msgspec.json.encode(value) if isinstance(value, msgspec.Struct) else value


async def find_lost_blobs(store: Store, tree: Tree) -> list[Problem]:
    """Blobs that a journal refers to and that are missing or have another content."""
    salt = salt_of(tree.root.nonce)
    wanted: dict[str, int] = {}
    for row in tree.rows:
        try:
            event = open_row(row, salt=salt, run_id=tree.root.root_id)
        except OutliveError:
            continue
        for name in event.__struct_fields__:
            value = getattr(event, name)
            if isinstance(value, Payload) and value.blob:
                wanted[value.blob] = row[0]
    found = await store.get_blobs(sorted(wanted)) if wanted else {}
    return [
        Problem(tree.root.root_id, f"blob {id} is {'damaged' if id in found else 'missing'}", seq)
        for id, seq in wanted.items()
        if id not in found or hashlib.sha256(found[id]).hexdigest() != id
    ]
