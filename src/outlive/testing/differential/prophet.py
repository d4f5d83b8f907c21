"""The oracle's own player: the same answers from a much simpler source."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from outlive._model import RunFilter
from outlive._store.contract import Change, Outcome
from outlive.testing.differential.changes import Draft, blob
from outlive.testing.differential.oracle import Oracle
from outlive.testing.differential.player import (
    BLOBS,
    PAGES_MAX,
    UNKNOWN,
    Plan,
    definitions_of,
    filter_of,
    list_with_items,
    plain,
    told_claims,
    told_mail,
    told_run,
    worker_of,
)
from outlive.testing.differential.script import WORKERS


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
                return self._tell(changes, oracle.transact(changes, operation.name))
            case "roll back":
                return None
            case "deliver":
                start = self._change(plan.start) if plan.start else None
                return [each.value for each in oracle.deliver(plan.messages, start, operation.numbers[0])]
            case "claim":
                claims = oracle.claim(operation.worker, definitions_of(operation), plan.limit, *plan.orphans)
                return told_claims(claims, plan.wake_ups)
            case "hire":
                return oracle.register(worker_of(operation, oracle.now()), operation.numbers[0])
            case "retire":
                return oracle.retire(operation.worker)
            case "beat":
                return oracle.renew(operation.worker, 30)
            case "put blobs":
                return oracle.world.blobs.update((it.id, it.data) for it in map(blob, operation.numbers))
            case "list":
                return self._pages(filter_of(operation), operation.numbers[0], PAGES_MAX)
            case "read":
                return self._read(plan)
            case verb:
                raise AssertionError(f"nobody knows how to {verb}")

    def _number(self, number: int) -> int:
        trees = self._oracle.world.trees
        return next((journal for journal, tree in trees.items() if tree.runs[0].nonce == number), UNKNOWN)

    def _change(self, draft: Draft) -> Change:
        change = draft.change
        mail = {mail.name: mail.id for tree in self._oracle.world.trees.values() for mail in tree.inbox}
        return replace(
            change,
            journal=self._number(change.journal) if change.journal else 0,
            renames=[replace(run, journal=self._number(run.journal)) for run in change.renames],
            consumed=[mail.get(name, UNKNOWN) for name in draft.consumed],
            starts=[self._change(start) for start in draft.starts],
            heir_of=self._number(change.heir_of) if change.heir_of else 0,
        )

    def _commit(self, plan: Plan) -> Any:
        changes = [self._change(draft) for draft in plan.drafts]
        return self._tell(changes, self._oracle.commit(changes))

    def _tell(self, changes: list[Change], outcomes: list[tuple[Outcome, int]]) -> Any:
        return [(outcome.value, True) for _, (outcome, _) in zip(changes, outcomes, strict=True)]

    def _pages(self, wanted: RunFilter, limit: int, most: int) -> Any:
        runs = self._oracle.list_runs(wanted, 10_000, None)
        pages = [runs[start : start + limit] for start in range(0, len(runs) + 1, limit)][:most]
        return [[told_run(run) for run in page] for page in pages]

    def _read(self, plan: Plan) -> Any:
        world = self._oracle.world
        number, after, limit = plan.operation.numbers
        found = {id: told_run(pair[1]) for id in plan.operation.ids if (pair := world.find(id))}
        items = self._oracle.read_items(plan.operation.ids[0], after, limit)
        tree = world.trees.get(self._number(number))
        rows = [] if tree is None else tree.rows[after + 1 : after + 1 + limit]
        return found, plain(items), found.get(plan.operation.ids[0]), rows

    def look(self) -> Any:
        """Everything that can be seen."""
        oracle, trees = self._oracle, self._oracle.world.trees.values()
        return {
            "runs": self._pages(RunFilter(), 50, 100),
            "journals": {tree.runs[0].nonce: tree.rows for tree in trees},
            "inboxes": {tree.runs[0].nonce: told_mail(tree.inbox) for tree in trees if tree.inbox},
            "workers": plain(sorted(oracle.list_workers(), key=lambda worker: worker.id)),
            "mail": {
                id: sorted(tree.runs[0].nonce for tree in trees if tree.inbox and tree.runs[0].owner == id)
                for id in WORKERS
            },
            "blobs": {id: oracle.world.blobs[id] for id in BLOBS if id in oracle.world.blobs},
        }

    def look_closely(self) -> Any:
        """What is never changed once it is there: items, and what the transactions wrote."""
        with_items = list_with_items(self._oracle)
        return {
            "items": {id: plain(self._oracle.read_items(id, -1, 1_000)) for id in with_items},
            "notes": sorted(self._oracle.notes),
        }
