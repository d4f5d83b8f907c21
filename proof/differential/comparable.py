"""Answers that can be compared: what a store or the oracle says, without what each store decides for itself.

Handles of journals and ids of messages are never compared. Everything else is: outcomes, rows byte for byte, run rows
field by field, and every order that the contract promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from outlive._kernel.model import Run
from outlive._kernel.store.contract import Answer, Claims, InboxMessage
from outlive._kernel.store.examine import TreeRows
from proof.differential.oracle import Oracle
from proof.differential.words import ASKED, STREAMS


def list_with_items(oracle: Oracle) -> list[str]:
    """The runs of all trees that have items."""
    return [run.id for tree in oracle.world.trees.values() if tree.items for run in tree.runs.values()]


def plain(answer: Any) -> Any:
    """What an answer says, whatever it is made of."""
    return msgspec.json.decode(msgspec.json.encode(answer))


def comparable_run(run: Run) -> Any:
    """A run row without its handle."""
    return plain(replace(run, journal=0))


def comparable_inbox(inbox: Sequence[InboxMessage]) -> Any:
    """An inbox without its ids, which must rise."""
    assert [message.id for message in inbox] == sorted({message.id for message in inbox}), "message ids do not rise"
    return plain([replace(message, id=0) for message in inbox])


def comparable_claims(claims: Claims, wake_ups: Mapping[str, int]) -> Any:
    """Claims in their order; those with the same wake-up in any."""
    order = [wake_ups.get(claim.run.id, -1) for claim in claims.claims]
    taken = sorted((wake_ups.get(claim.run.id, -1), claim.run.id, claim.seq) for claim in claims.claims)
    runs = {claim.run.id: (comparable_run(claim.run), claim.interrupted) for claim in claims.claims}
    return order, taken, runs, claims.next_wake_at


def comparable_tree(tree: TreeRows) -> Any:
    """What a checker sees of a tree, without handles, keys of rows and ids; its runs are compared elsewhere."""
    runs = [(row.number, row.id, row.root_id, row.fault, row.untagged) for row in tree.runs]
    inbox = [(message.run, message.kind, message.key, message.is_remembered) for message in tree.inbox]
    return runs, tree.tail, tree.count, tree.lasts, inbox, plain(tree.items), tree.keys, tree.answered


def list_streams(oracle: Oracle) -> list[tuple[str, str]]:
    """Streams that there are, and of the youngest runs also some that there may not be: the id of the run, and the
    name."""
    runs = list(oracle.world.each_run())
    there = [(run.id, name) for journal, run in runs for number, name in oracle.world.trees[journal].streams
             if number == run.number]  # fmt: skip
    return sorted({*there, *((run.id, name) for _, run in runs[-3:] for name in STREAMS)})


def list_asks(oracle: Oracle) -> list[tuple[str, str]]:
    """Every run with every key that scripts have."""
    return [(run_id, key) for run_id in ["unknown", *(run.id for _, run in oracle.world.each_run())] for key in ASKED]


def comparable_answers(answers: Mapping[tuple[str, str], Answer | None]) -> Any:
    """Answers by run and key."""
    return {asked: plain(answer) for asked, answer in answers.items()}


def comparable_turns(answers: Iterable[tuple[str, Any]]) -> Any:
    """What changes of cells answered, by cell; those of one cell in any order."""
    by_cell: dict[str, list[str]] = {}
    for cell, answer in answers:
        by_cell.setdefault(cell, []).append(repr(answer))
    return {cell: sorted(each) for cell, each in by_cell.items()}
