"""The oracle's own player: the same answers from a much simpler source."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from outlive._kernel.model import RunFilter
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.contract import Change, MessageRefusal, Outcome, Watch
from outlive._kernel.store.examine import InboxRow, ItemRows, RunRow, TreeRows
from proof.differential.changes import Draft, blob
from proof.differential.comparable import (
    comparable_answers,
    comparable_claims,
    comparable_inbox,
    comparable_run,
    comparable_tree,
    comparable_turns,
    list_asks,
    list_streams,
    list_with_items,
    plain,
)
from proof.differential.oracle import Oracle
from proof.differential.plan import Plan, definitions_of, filter_of, watches_of, worker_of
from proof.differential.player import BLOBS, PAGES_MAX, UNKNOWN
from proof.differential.script import CELLS, MARKED, WORKERS
from proof.differential.shelving import SurprisedError, change_of, row_of
from proof.differential.streams import ANY, FEW, Stream
from proof.differential.words import Turn
from proof.differential.world import Tree


class Prophet:
    """Plays on the oracle."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def play(self, plan: Plan) -> Any:
        """Do one operation and tell the answer."""
        oracle, operation = self._oracle, plan.operation
        match operation.verb:
            case "commit":
                return self._commit(plan)
            case "transact":
                changes = [self._change(draft) for draft in plan.drafts]
                return self._tell(changes, oracle.transact(changes, operation.name, plan.behind))
            case "roll back":
                return None
            case "deliver":
                start = self._change(plan.start) if plan.start else None
                return [each.value for each in oracle.deliver(plan.messages, start, operation.numbers[0])]
            case "claim":
                claims = oracle.claim(operation.worker, definitions_of(operation), plan.limit, *plan.orphans)
                return comparable_claims(claims, plan.wake_ups)
            case "say":
                appends = [replace(append, journal=self._number(append.journal)) for append in plan.appends]
                limits = FEW if operation.is_narrow else ANY
                return [each.value for each in oracle.append_streams(appends, limits)]
            case "refuse":
                return oracle.refuse(operation.worker, self._refusals(plan))
            case "gaze":
                runs = oracle.watch_ends(watches_of(operation))
                return {id: comparable_run(run) for id, run in runs.items()}
            case "delete":
                seconds, *numbers = operation.numbers
                journals = {self._number(number): number for number in numbers}
                gone = oracle.delete([*journals], oracle.now() - seconds * MICROSECONDS)
                return sorted(journals[each] for each in gone)
            case "hire":
                return oracle.register(worker_of(operation, oracle.now()), operation.numbers[0])
            case "retire":
                return oracle.retire(operation.worker)
            case "beat":
                return oracle.renew(operation.worker, 30)
            case "put blobs":
                return oracle.world.blobs.update((it.id, it.data) for it in map(blob, operation.numbers))
            case "turn":
                return comparable_turns((turn.cell, self._turn(turn)) for turn in operation.turns)
            case "append":
                return [oracle.shelf.append(mark.run, row_of(mark)) for mark in operation.marks]
            case "clear":
                return oracle.shelf.clear(operation.ids[0])
            case "list":
                wanted, limit = filter_of(operation), operation.numbers[0]
                pages = self._pages(wanted, limit, PAGES_MAX, oldest_first="oldest" in operation.finds)
                found = self._oracle.list_runs(wanted)
                return pages, min(len(found), limit), self._oracle.count_groups(found, limit)
            case "read":
                return self._read(plan)
            case verb:
                raise AssertionError(f"the oracle has no verb {verb}")

    def _number(self, number: int) -> int:
        trees = self._oracle.world.trees
        return next((journal for journal, tree in trees.items() if tree.runs[0].nonce == number), UNKNOWN)

    def _change(self, draft: Draft) -> Change:
        change = draft.change
        inbox = {message.name: message.id for tree in self._oracle.world.trees.values() for message in tree.inbox}
        return replace(
            change,
            journal=self._number(change.journal) if change.journal else 0,
            renames=[replace(run, journal=self._number(run.journal)) for run in change.renames],
            consumed=[inbox.get(name, UNKNOWN) for name in draft.consumed],
            starts=[self._change(start) for start in draft.starts],
            successor_of=self._number(change.successor_of) if change.successor_of else 0,
        )

    def _refusals(self, plan: Plan) -> list[MessageRefusal]:
        inbox = {message.name: message.id for tree in self._oracle.world.trees.values() for message in tree.inbox}
        return [
            MessageRefusal(journal=self._number(number), message=inbox.get(name, UNKNOWN), answer=answer)
            for number, name, answer in plan.refusals
        ]

    def _commit(self, plan: Plan) -> Any:
        changes = [self._change(draft) for draft in plan.drafts]
        return self._tell(changes, self._oracle.commit(changes))

    def _tell(self, changes: list[Change], outcomes: list[tuple[Outcome, int]]) -> Any:
        return [(outcome.value, True) for _, (outcome, _) in zip(changes, outcomes, strict=True)]

    def _turn(self, turn: Turn) -> Any:
        try:
            return self._oracle.shelf.change_cell(turn.cell, change_of(turn), self._oracle.now())
        except SurprisedError as error:
            return error

    def _pages(self, wanted: RunFilter, limit: int, most: int, *, oldest_first: bool = False) -> Any:
        runs = self._oracle.list_runs(wanted)
        if oldest_first:
            runs.reverse()
        pages = [runs[start : start + limit] for start in range(0, len(runs) + 1, limit)][:most]
        return [[comparable_run(run) for run in page] for page in pages]

    def _read(self, plan: Plan) -> Any:
        world = self._oracle.world
        number, after, limit = plan.operation.numbers
        found = {id: comparable_run(pair[1]) for id in plan.operation.ids if (pair := world.find(id))}
        items = self._oracle.read_items(plan.operation.ids[0], after, limit)
        tree = world.trees.get(self._number(number))
        rows = [] if tree is None else [row for row in tree.rows if row[0] > after][:limit]
        return found, plain(items), found.get(plan.operation.ids[0]), rows

    def look(self) -> Any:
        """Everything that can be seen."""
        oracle, trees = self._oracle, self._oracle.world.trees.values()
        return {
            "runs": self._pages(RunFilter(), 50, 100),
            "journals": {tree.runs[0].nonce: tree.rows for tree in trees},
            "inboxes": {tree.runs[0].nonce: comparable_inbox(tree.inbox) for tree in trees if tree.inbox},
            "workers": plain(sorted(oracle.list_workers(), key=lambda worker: worker.id)),
            "mail": {
                id: sorted(tree.runs[0].nonce for tree in trees if tree.inbox and tree.runs[0].owner == id)
                for id in WORKERS
            },
            "blobs": {id: oracle.world.blobs[id] for id in BLOBS if id in oracle.world.blobs},
            "cells": {cell: oracle.shelf.cells.get(cell) for cell in CELLS},
            "checkpoints": {id: oracle.shelf.read(id) for id in MARKED},
            "answers": comparable_answers(oracle.find_answers(list_asks(oracle))),
            "streams": {stream: self._read_stream(*stream) for stream in list_streams(oracle)},
        }

    def _read_stream(self, run_id: str, name: str) -> Any:
        found = self._oracle.world.find(run_id)
        streams = {} if found is None else self._oracle.world.trees[found[0]].streams
        stream = streams.get((0 if found is None else found[1].number, name), Stream())
        behind = [first for first, count, _ in stream.chunks if first + count - 1 > 1]
        return list(stream.chunks), behind[:2]

    def look_closely(self) -> Any:
        """What changes seldom, or only a checker sees."""
        with_items = list_with_items(self._oracle)
        return {
            "items": {id: plain(self._oracle.read_items(id, -1, 1_000)) for id in with_items},
            "notes": sorted(self._oracle.notes),
            "faults": [],
            "handles": True,
            "rows": {tree.runs[0].nonce: comparable_tree(_rows_of(tree)) for tree in self._oracle.world.trees.values()},
            "marked": self._oracle.shelf.list_marked(),
            "watches": plain(
                [
                    Watch(run_id=run_id, watcher=watcher, key=key)
                    for (run_id, watcher), key in sorted(self._oracle.world.watches.items())
                ]
            ),
        }


def _rows_of(tree: Tree) -> TreeRows:
    """What a checker must see of a tree."""
    runs = [
        RunRow(key=0, journal=0, number=run.number, id=run.id, root_id=run.root_id)
        for _, run in sorted(tree.runs.items())
    ]
    indexes = {number: sorted(index for run, index in tree.items if run == number) for number, _ in sorted(tree.items)}
    return TreeRows(
        journal=0,
        runs=tuple(runs),
        tail=tree.tail,
        count=len(tree.rows),
        lasts=((tree.tail, 1),) if tree.has_ended else (),
        inbox=tuple(
            InboxRow(
                id=0, run=message.run, kind=message.kind.value, key=message.key, is_remembered=message.key in tree.keys
            )
            for message in tree.inbox
        ),
        items=tuple(
            ItemRows(run=run, count=len(found), first=found[0], last=found[-1]) for run, found in indexes.items()
        ),
        keys=tuple(sorted(tree.keys)),
        answered=tuple(sorted(tree.answers)),
    )
