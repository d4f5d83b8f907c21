"""The problems of one tree: differences between its rows and its journal, and rows that hang on nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import msgspec

from outlive._features.fsck.problem import Kind, Problem
from outlive._features.fsck.reading import Reading
from outlive._kernel.model import Run, RunStatus, child_id
from outlive._kernel.model.id import made_room
from outlive._kernel.model.run import HELD
from outlive._kernel.store.contract import MessageKind
from outlive._kernel.store.examine import RunRow, TreeRows

_KINDS = frozenset(kind.value for kind in MessageKind)


def root_row(tree: TreeRows) -> RunRow | None:
    """The row of the root, if there is one."""
    return next((row for row in tree.runs if row.key == tree.journal and row.number <= 0), None)


def root_id_of(tree: TreeRows) -> str:
    """The id of the root, as most rows have it; empty if they are at odds. The journal itself does not know it."""
    said: Counter[str] = Counter(row.root_id for row in tree.runs)
    if (root := root_row(tree)) is not None:
        said[root.id] += 1
    (first, most), *others = [*said.most_common(2), ("", 0)]
    return "" if others and others[0][1] == most else first


def judge(tree: TreeRows, reading: Reading, *, workers: Collection[str], now_at: int) -> Iterator[Problem]:
    """Everything that can be seen without reading more."""
    if tree.tail < 0:
        yield from _judge_without_journal(tree)
        return
    yield from reading.problems
    if root_row(tree) is None:
        yield _problem(tree, "", f"the journal has {tree.count} events and its root has no row", Kind.ORPHAN)
        yield from (_problem(tree, row.id, "its root has no row", Kind.ORPHAN) for row in tree.runs)
        return
    if not reading.is_sound:
        return
    yield from _judge_end(tree, reading)
    yield from _judge_rows(tree, reading)
    yield from _judge_inbox(tree, reading, now_at=now_at)
    yield from _judge_items(tree, reading)
    yield from _judge_streams(tree, reading)
    yield from _judge_rest(tree, reading, workers=workers)


def _problem(tree: TreeRows, run_id: str, what: str, kind: Kind, seq: int | None = None) -> Problem:
    return Problem(run_id, what, seq, kind, tree.journal)


def _judge_without_journal(tree: TreeRows) -> Iterator[Problem]:
    for row in tree.runs:
        yield _problem(tree, row.id, "has a row and no journal", Kind.ORPHAN)
    rest = {
        "messages": tree.inbox,
        "outcomes of items": tree.items,
        "keys of messages": tree.keys,
        "streams": tree.streams,
    }
    for name, rows in rest.items():
        if rows and not tree.runs:
            yield _problem(tree, "", f"{name} hang on a tree that is not there", Kind.ORPHAN)


def _judge_end(tree: TreeRows, reading: Reading) -> Iterator[Problem]:
    """The mark of the last event is what keeps a tree that has ended from being written to."""
    wanted = ((tree.tail, 1),) if reading.fold.root.status.is_terminal else ()
    if tree.lasts != wanted:
        marked = [seq for seq, _ in tree.lasts]
        what = f"events {marked} are marked as the last, and it should be {[seq for seq, _ in wanted]}"
        yield _problem(tree, reading.root_id, what, Kind.EVENT, marked[0] if marked else tree.tail)


# -- Run rows ------------------------------------------------------------------------------------------------


def _judge_rows(tree: TreeRows, reading: Reading) -> Iterator[Problem]:
    folded = reading.fold.runs
    root = root_row(tree)
    if root is not None and root.run is not None and _is_ahead(root.run, reading.fold.root):
        what = "the row of the root tells of later events than the journal has: its end is lost"
        yield _problem(tree, root.id, what, Kind.EVENT, tree.tail + 1)
        return
    for number in sorted(folded.keys() - {row.number for row in tree.runs}):
        yield _problem(tree, child_id(reading.root_id, number), "is in the journal and has no row", Kind.ROW)
    for row in tree.runs:
        run = folded.get(row.number)
        if run is None:
            yield _problem(tree, row.id, "has a row and is not in the journal", Kind.ROW)
            continue
        for difference in differences(tree, row, run):
            yield _problem(tree, row.id, difference, Kind.ROW)
        if reading.fold.root.status.is_terminal and not run.status.is_terminal:
            what = f"is {run.status.value} in a tree that has ended"
            yield _problem(tree, row.id, what, Kind.EVENT, tree.tail)


def _is_ahead(row: Run, folded: Run) -> bool:
    """Whether a row follows from events that are not there. One that is only damaged differs in one place."""
    later = ("status", "owner", "epoch", "finished_at", "wake_at")
    return row.updated_at > folded.updated_at and any(getattr(row, name) != getattr(folded, name) for name in later)


def differences(tree: TreeRows, row: RunRow, folded: Run) -> list[str]:
    """Where a row and the fold of its journal disagree."""
    if row.run is None:
        return [f"the row cannot be read: {row.fault}"]
    found = [f"is not found by its tag {name!r}" for name in row.untagged]
    if row.is_unlined:
        found.append(f"is in line in queue {row.run.queue!r}, and no claim would find that line")
    if row.journal != tree.journal:
        found.append(f"journal is {row.journal} in the row, which hangs on {tree.journal}")
    may_be_woken = row.number == 0 and bool(tree.inbox) and not folded.status.is_terminal
    for name in Run.__struct_fields__:
        if name == "journal":  # The handle is the store's, and the journal does not know it.
            continue
        has, wanted = getattr(row.run, name), getattr(folded, name)
        if _plain(has) == _plain(wanted) or (name == "wake_at" and may_be_woken and _is_earlier(has, wanted)):
            continue
        # The store lets a run get in line when it is due; that is not an event.
        if name != "slot" or HELD in (has, wanted) or folded.status.is_terminal:
            found.append(f"{name} is {has!r} in the row and {wanted!r} in the journal")
    return found


def _is_earlier(found: int | None, wanted: int | None) -> bool:
    return found is not None and (wanted is None or found <= wanted)


def _plain(value: object) -> object:
    """Payloads hold raw JSON, which compares by identity."""
    return msgspec.json.encode(value) if isinstance(value, msgspec.Struct) else value


# -- What hangs on the tree ----------------------------------------------------------------------------------


def _judge_inbox(tree: TreeRows, reading: Reading, *, now_at: int) -> Iterator[Problem]:
    root, root_id = root_row(tree), reading.root_id
    for message in tree.inbox:
        if message.run not in reading.fold.runs:
            yield _problem(
                tree, root_id, f"message {message.id} is for run {message.run}, which is not there", Kind.MAIL
            )
        if message.kind not in _KINDS:
            yield _problem(
                tree, root_id, f"message {message.id} is of no kind that there is: {message.kind!r}", Kind.MAIL
            )
        if message.key and not message.is_remembered:
            yield _problem(tree, root_id, f"the key of message {message.id} is forgotten", Kind.MAIL)
    if root is None or root.run is None or root.run.status.is_terminal or root.run.owner:
        return
    if root.run.status is RunStatus.PENDING and not root.run.epoch and root.run.wake_at is not None:
        return  # It is to begin then.
    wakes = [message for message in tree.inbox if root.run.status is not RunStatus.PARKED or message.kind == "resume"]
    if wakes and (root.run.wake_at is None or root.run.wake_at > now_at):
        yield _problem(tree, root_id, f"{len(wakes)} messages wait, and no worker will look at them", Kind.WAKE)


def _judge_items(tree: TreeRows, reading: Reading) -> Iterator[Problem]:
    counts = {items.run: items for items in tree.items}
    for run in sorted(counts.keys() | reading.outcomes.keys()):
        run_id = child_id(reading.root_id, run)
        wanted = sum(reading.outcomes.get(run, Counter()).values())
        items = counts.get(run)
        if (items.count if items else 0) != wanted:
            what = f"{items.count if items else 0} outcomes of items are stored, and the journal tells of {wanted}"
            yield _problem(tree, run_id, what, Kind.ITEM)
        if items is None:
            continue
        if items.first < 0:
            yield _problem(tree, run_id, f"an item has the index {items.first}", Kind.ITEM)
        folded = reading.fold.runs.get(run)
        is_whole = items.last - items.first + 1 == items.count
        if folded is not None and folded.status is RunStatus.SUCCEEDED and not is_whole:
            what = f"items {items.first} to {items.last} are stored, and only {items.count} of them"
            yield _problem(tree, run_id, what, Kind.ITEM)


def _judge_streams(tree: TreeRows, reading: Reading) -> Iterator[Problem]:
    for stream in tree.streams:
        run_id = child_id(reading.root_id, stream.run)
        if stream.run not in reading.fold.runs:
            yield _problem(tree, run_id, f"has the stream {stream.name!r} and is not in the journal", Kind.STREAM)
        if stream.gaps or stream.items != stream.position:
            what = f"stream {stream.name!r} ends at {stream.position}, and {stream.items} items are stored"
            yield _problem(tree, run_id, what, Kind.STREAM)


def _judge_rest(tree: TreeRows, reading: Reading, *, workers: Collection[str]) -> Iterator[Problem]:
    root = reading.fold.root
    # A generation that has ended has given its keys to the next one; and a run that made room has another id now, and
    # has given its keys to the run that lives on under the old one.
    if root.status is not RunStatus.CONTINUED and not made_room(root.id):
        for key in sorted(reading.keys - set(map(_sent, tree.keys))):
            yield _problem(tree, root.id, f"the key {key!r} of a message is forgotten", Kind.MAIL)
        for key in sorted(reading.answered - set(map(_sent, tree.answered))):
            yield _problem(tree, root.id, f"the answer to the ask with the key {key!r} is lost", Kind.MAIL)
    if root.owner and root.owner not in workers:
        yield _problem(tree, root.id, f"its owner {root.owner} is not a worker that the store knows", Kind.OWNER)
    due_at = min((wait.until_at for wait in root.waits if wait.until_at is not None), default=None)
    if root.status is RunStatus.WAITING and due_at is not None and (root.wake_at is None or root.wake_at > due_at):
        what = f"a wait ends at {due_at}, and the journal says to wake it at {root.wake_at}"
        yield _problem(tree, root.id, what, Kind.WAKE)


def _sent(key: str) -> str:
    """The key of a message without the id of its run, which may be another one now."""
    kind, _, rest = key.partition("/")
    return f"@ask/{rest.partition('/')[2]}" if kind == "@ask" else rest
