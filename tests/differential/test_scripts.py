"""Random scripts do what they are there for, and often: what never happens in a script is never compared."""

import copy
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from proof.differential import OPERATIONS_PER_EPISODE, Episode
from proof.differential.oracle import Oracle
from proof.differential.plan import filter_of
from proof.differential.script import Author
from proof.differential.shelf import Shelf
from proof.differential.shelving import row_of
from proof.differential.words import Operation, Write
from proof.differential.world import Tree, World

EPISODES = 20
HAPPENS_MIN = {
    # Journals that forget, and guarded changes.
    "forgets": 120,
    "forgets a child": 20,
    "forgets items": 10,
    "forgets mail": 6,
    "forgets, and leaves a child": 35,
    "forgets twice in one change": 4,
    "forgets in a transaction": 3,
    "forgets, and ends": 5,
    "writes behind a snapshot": 140,
    "writes behind a snapshot of the same call": 15,
    "claims behind a snapshot": 35,
    "reads behind a snapshot": 30,
    "forgets, refused: another worker has claimed": 3,
    "forgets, refused: another writer came before": 15,
    "forgets, refused: what it knows is forgotten": 10,
    "forgets, refused: not yet there": 9,
    "forgets, refused: the tree has ended": 10,
    "guarded": 265,
    "guarded, refused": 80,
    "guarded, two of one tree in one call": 10,
    # Changes that say that they follow another row than the last one of their journal.
    "names another row": 15,
    "names no row": 15,
    "names an earlier row": 15,
    "names another row, in a transaction": 3,
    # Transactions.
    "transacts behind the row that it knows": 15,
    "transacts, refused: another row is there": 2,
    # Trees that go on after their end, answers, streams and watches.
    "reopens": 40,
    "reopens, refused": 35,
    "reopens, and frees a key": 3,
    "answers": 20,
    "answers what is answered": 14,
    "refuses": 30,
    "refuses, of another worker": 30,
    "says": 70,
    "says, there already": 19,
    "says, late": 2,
    "says, lost": 50,
    "says, full": 1,
    "a workflow says": 90,
    "a workflow says, there already": 4,
    "watches": 100,
    "watches, not kept": 14,
    "a watched run ends": 9,
    "a watched run goes on": 10,
    # Lists whose filters let some runs through, and not all.
    "finds by queue": 4,
    "finds by hides_internal": 3,
    "finds by sleeps": 2,
    "finds by asks": 2,
    "finds by overdue_at": 1,
    # Trees that are deleted.
    "deletes": 14,
    "deletes, kept: it is open": 30,
    "deletes, kept: it ended later": 10,
    "deletes, kept: it is needed": 9,
    "deletes, not there": 25,
    "an id is free again": 1,
    # Cells.
    "cell, new": 50,
    "cell, changed": 85,
    "cell, as expected": 50,
    "cell, not as expected": 15,
    "cell, one changed while another is not as expected": 10,
    "cell, changed by several at once": 15,
    # Checkpoints.
    "checkpoint": 60,
    "checkpoint, there already": 20,
    "checkpoint, another one is there": 25,
    "checkpoint, the same twice at once": 10,
    "checkpoint, again after it was cleared": 7,
    "clear": 15,
    "clear, nothing there": 15,
}
"""How often each happens in all episodes, at least; about half of what it was when this was written."""


async def test_everything_happens_often() -> None:
    """Every operation happens often in random scripts, refused and repeated ones too."""
    counts: Counter[str] = Counter()
    for seed in range(EPISODES):
        async for happening in play(str(seed)):
            counts[happening] += 1

    assert {name: counts[name] for name, least in HAPPENS_MIN.items() if counts[name] < least} == {}


async def play(seed: str) -> Any:
    """Everything that happens in a script, played on the oracle alone."""
    appended: set[Any] = set()
    deleted: set[str] = set()
    async with Episode.open({}) as episode:
        oracle = episode.oracle
        author = Author(seed, oracle)
        for _ in range(OPERATIONS_PER_EPISODE):
            operation, before = author.next(), copy.copy(oracle.world)
            shelf = Shelf()
            shelf.cells, shelf.checkpoints = dict(oracle.shelf.cells), oracle.shelf.checkpoints[:]
            truth = await episode.play(operation)
            happenings: Iterator[str]
            match operation.verb:
                case "commit" | "transact":
                    happenings = chain(
                        list_changes(operation, truth, before, oracle.world),
                        list_talk(operation, truth, before, oracle.world),
                    )
                case "delete":
                    happenings = list_deleted(operation, truth, before)
                    deleted |= {by_number(before)[number].runs[0].id for number in truth}
                case "say" | "refuse" | "gaze":
                    happenings = list_said(operation, truth, before, oracle.world)
                case "claim" | "read":
                    happenings = list_behind_snapshots(operation, before, oracle.world)
                case "turn":
                    happenings = list_turns(operation, truth, shelf)
                case "list":
                    happenings = list_found(operation, oracle)
                case "append" | "clear":
                    happenings = list_checkpoints(operation, truth, shelf, appended)
                case _:
                    continue
            for happening in happenings:
                yield happening
            for tree in oracle.world.trees.values():
                if tree.runs[0].id in deleted:
                    deleted.remove(tree.runs[0].id)
                    yield "an id is free again"


def list_found(operation: Operation, oracle: Oracle) -> Iterator[str]:
    """The filters of a list that lets some runs through, and not all."""
    found = len(oracle.list_runs(filter_of(operation)))
    if 0 < found < len(list(oracle.world.each_run())):
        for name in operation.finds:
            yield f"finds by {name}"


def list_changes(operation: Operation, truth: Any, before: World, after: World) -> Iterator[str]:
    """What became of writes."""
    trees, now = by_number(before), by_number(after)
    writes = [
        (part, outcome == "conflict")
        for part, (outcome, _) in zip(operation.changes, truth, strict=True)
        if isinstance(part, Write) and part.tree in trees
    ]
    forgetful: set[int] = set()
    guarded = Counter(write.tree for write, _ in writes if write.is_guarded)
    yield from ("guarded, two of one tree in one call" for count in guarded.values() if count > 1)
    if writes and operation.numbers == (1,) and not writes[0][1]:
        yield "transacts behind the row that it knows"
    if writes and operation.numbers == (0,) and not writes[0][0].lag and not trees[writes[0][0].tree].has_ended:
        yield "transacts, refused: another row is there"
    for write, is_refused in writes:
        if write.names and is_refused and not write.lag and not trees[write.tree].has_ended:
            yield {"another": "names another row", "none": "names no row", "earlier": "names an earlier row"}[
                write.names
            ]
            if operation.verb == "transact":
                yield "names another row, in a transaction"
        if write.is_guarded:
            yield "guarded"
        if write.is_guarded and is_refused:
            yield "guarded, refused"
        if "forget" in write.moves and is_refused:
            yield f"forgets, refused: {why(write, trees[write.tree])}"
        elif "forget" in write.moves:
            yield from list_forgotten(operation, write, trees[write.tree], now[write.tree])
            forgetful.add(write.tree)
        elif not is_refused and write.tree in forgetful:
            yield "writes behind a snapshot of the same call"
        elif not is_refused and is_short(trees[write.tree]):
            yield "writes behind a snapshot"


def list_talk(operation: Operation, truth: Any, before: World, after: World) -> Iterator[str]:
    """What changes said, answered and ended."""
    trees, now = by_number(before), by_number(after)
    for part, (outcome, _) in zip(operation.changes, truth, strict=True):
        if not isinstance(part, Write) or part.tree not in trees:
            continue
        if part.reopens:
            yield "reopens" if outcome == "committed" else "reopens, refused"
            if outcome == "committed" and {*part.freed} & trees[part.tree].keys:
                yield "reopens, and frees a key"
        if outcome != "committed" or part.tree not in now:
            continue
        for key, _ in part.answers:
            if key in trees[part.tree].answers:
                yield "answers what is answered"
            elif key in now[part.tree].answers:
                yield "answers"
        for line in part.lines:
            if line.run == 0 and (stream := trees[part.tree].streams.get((0, line.stream))) is not None:
                yield "a workflow says" if line.number > stream.number else "a workflow says, there already"
        watched = [run_id for run_id, _ in before.watches if run_id == trees[part.tree].runs[0].id]
        if watched and now[part.tree].has_ended:
            yield "a watched run ends" if len(after.watches) < len(before.watches) else "a watched run goes on"


def list_deleted(operation: Operation, truth: Any, before: World) -> Iterator[str]:
    """What became of deletions."""
    trees = by_number(before)
    for number in {*operation.numbers[1:]}:
        if number in truth:
            yield "deletes"
        elif number not in trees:
            yield "deletes, not there"
        elif not trees[number].has_ended:
            yield "deletes, kept: it is open"
        elif operation.numbers[0]:
            yield "deletes, kept: it ended later"
        else:
            yield "deletes, kept: it is needed"


def list_said(operation: Operation, truth: Any, before: World, after: World) -> Iterator[str]:
    """What became of appends to streams, of refusals and of watches."""
    trees, now = by_number(before), by_number(after)
    for say, answer in zip(operation.says, truth or (), strict=False):
        grown = say.tree in now and now[say.tree].streams != trees[say.tree].streams
        line = say.lines[0]
        stream = trees[say.tree].streams.get((line.run, line.stream)) if say.tree in trees else None
        if answer != "appended":
            yield f"says, {answer}"
        elif grown:
            yield "says"
        elif stream is not None:
            yield "says, there already" if stream.mark == say.mark else "says, late"
    if operation.verb == "refuse":
        waiting = {message.name for tree in trees.values() for message in tree.inbox}
        left = {message.name for tree in now.values() for message in tree.inbox}
        for name in {*operation.ids} & waiting:
            yield "refuses, of another worker" if name in left else "refuses"
    for gaze in operation.gazes:
        yield "watches" if after.watches.get((gaze.run, gaze.watcher)) == gaze.key else "watches, not kept"


def list_forgotten(operation: Operation, write: Write, before: Tree, after: Tree) -> Iterator[str]:
    """What a change made a tree forget."""
    gone = before.runs.keys() - after.runs.keys()
    happenings = {
        "forgets": True,
        "forgets a child": gone,
        "forgets items": any(run in gone for run, _ in before.items),
        "forgets mail": any(message.run in gone for message in before.inbox),
        "forgets, and leaves a child": len(after.runs) > 1,
        "forgets twice in one change": write.moves.count("forget") > 1,
        "forgets in a transaction": operation.verb == "transact",
        "forgets, and ends": after.has_ended,
    }
    yield from (happening for happening, has_happened in happenings.items() if has_happened)


def why(write: Write, tree: Tree) -> str:
    """Why a tree could not forget."""
    if tree.has_ended:
        return "the tree has ended"
    if write.lag > 0:
        return "not yet there"
    if tree.tail + write.lag < tree.rows[0][0]:
        return "what it knows is forgotten" if is_short(tree) else "never there"
    if write.lag == -1 and b'"RunClaimed"' in tree.rows[-1][3]:
        return "another worker has claimed"
    return "another writer came before" if write.lag else "something else"


def list_behind_snapshots(operation: Operation, before: World, after: World) -> Iterator[str]:
    """Claims and reads of journals that have forgotten something."""
    trees = by_number(after)
    if operation.verb == "read" and operation.numbers[0] in trees and is_short(trees[operation.numbers[0]]):
        yield "reads behind a snapshot"
    for number, tree in by_number(before).items():
        if is_short(tree) and len(tree.rows) < len(trees[number].rows):
            yield "claims behind a snapshot"


def list_turns(operation: Operation, truth: Any, shelf: Shelf) -> Iterator[str]:
    """What became of changes of cells."""
    surprises = [turn.cell for turn in operation.turns if truth[turn.cell] == ["SurprisedError()"]]
    for turn in operation.turns:
        if turn.cell in surprises:
            yield "cell, not as expected"
        else:
            yield "cell, as expected" if turn.expects else "cell, changed"
            if turn.cell not in shelf.cells:
                yield "cell, new"
    if 0 < len(surprises) < len(operation.turns):
        yield "cell, one changed while another is not as expected"
    if len(operation.turns) > len(truth):
        yield "cell, changed by several at once"


def list_checkpoints(operation: Operation, truth: Any, shelf: Shelf, appended: set[Any]) -> Iterator[str]:
    """What became of checkpoints; `appended` are all checkpoints so far in this script."""
    if operation.verb == "clear":
        yield "clear" if shelf.read(operation.ids[0]) else "clear, nothing there"
        return
    if len(set(operation.marks)) < len(operation.marks):
        yield "checkpoint, the same twice at once"
    for mark, is_there in zip(operation.marks, truth, strict=True):
        if not is_there:
            yield "checkpoint, another one is there"
        elif row_of(mark) in shelf.read(mark.run):
            yield "checkpoint, there already"
        else:
            yield "checkpoint, again after it was cleared" if mark in appended else "checkpoint"
        appended |= {mark} if is_there else set()


def by_number(world: World) -> dict[int, Tree]:
    """The trees of a world by the numbers that a script has for them."""
    return {tree.runs[0].nonce: tree for tree in world.trees.values()}


def is_short(tree: Tree) -> bool:
    """Whether its journal has forgotten something."""
    return tree.rows[0][0] > 0
