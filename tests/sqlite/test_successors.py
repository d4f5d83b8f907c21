"""Going on as another run is cheap: it is part of a batch and pushes no other change into the careful way."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from outlive._kernel.journal.codec import salt_of, seal
from outlive._kernel.model import RunFilter
from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.sqlite import SqliteStore, commit
from outlive.events import RunContinued, RunSucceeded
from outlive_conformance.suite.builders import begin, created, get_run, message, send, stepped, value
from outlive_conformance.suite.successors import continuation


async def test_trees_go_on_in_a_batch(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is judged one by one."""
    trees = [await begin(store, f"run-{number}") for number in range(10)]
    await trees[0].spawn(1)
    await trees[0].succeed(run=1)
    other = await begin(store, "other")
    await send(store, *(message(store, tree.run_id) for tree in trees))
    changes = [await continuation(tree) for tree in trees]
    monkeypatch.delattr(commit, "_commit_carefully")

    outcomes = await store.commit([*changes, other.change(stepped(store))])

    assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED] * 11


async def test_child_that_ends_with_its_tree_moves_aside_with_it(store: SqliteStore) -> None:
    """A child that was born in the change that ends its tree moves aside with it and keeps its tags."""
    tree = await begin(store)
    change = await continuation(tree)
    born = created(store, run=1, parent=0, call="child", tags={"colour": "red"})
    whole = tree.change(born, RunSucceeded(at=store.now(), run=1, result=value(1)))
    child = next(run for run in whole.runs if run.number == 1)
    root = next(run for run in change.runs if run.number == 0)
    (successor,) = change.starts
    successor.renames.append(
        replace(child, journal=tree.journal, id="run-1.1~1", root_id="run-1.1", parent_id="run-1.1")
    )
    end = RunContinued(at=store.now(), workflow="greet", version=2)
    rows = [*whole.rows, seal(end, salt=salt_of(tree.nonce), seq=len(whole.rows) + 1)]
    ((outcome, _),) = await store.commit([replace(change, rows=rows, runs=[root, child])])

    assert outcome is Outcome.COMMITTED
    assert (await get_run(store, "run-1.1~1")).journal == tree.journal
    assert [run.id for run in await store.list_runs(RunFilter(tags={"colour": "red"}))] == ["run-1.1~1"]
