"""A commit whose answer was lost, of a journal that forgets: only what is left can tell what became of it."""

from __future__ import annotations

import pytest

from outlive._kernel.runtime.commit.retry import find_outcome
from outlive._kernel.store.contract import Change, Forgotten, Outcome
from outlive._kernel.store.memory import MemoryStore
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import Writer, begin, created, new_tree, stepped
from outlive_conformance.suite.forgetting import forget, snapshot


@pytest.fixture
def store() -> MemoryStore:
    """With a clock of its own."""
    return MemoryStore(clock=ManualClock())


def forgetting(tree: Writer) -> Change:
    """A step, a snapshot of everything so far, and one more."""
    first, last = stepped(tree.store, "a"), stepped(tree.store, "b")
    return tree.change(first, snapshot(tree, events=2), last, forgets=Forgotten(2, 1))


async def test_a_change_that_forgot_was_written(store: MemoryStore) -> None:
    """Its rows from the snapshot on are there."""
    tree = await begin(store)
    change = forgetting(tree)
    await store.commit([change])

    assert await find_outcome(store, change) == (Outcome.COMMITTED, tree.journal)


async def test_a_change_that_would_forget_was_not_written(store: MemoryStore) -> None:
    """The journal ends where it did."""
    tree = await begin(store)

    assert await find_outcome(store, forgetting(tree)) is None


async def test_another_writer_was_first(store: MemoryStore) -> None:
    """Whether he has gone on a little, or has forgotten everything since."""
    tree = await begin(store)
    change = forgetting(tree)
    await tree.step("other")
    assert await find_outcome(store, change) == (Outcome.CONFLICT, tree.journal)

    await tree.step("more", "and more", "and more of it")
    await forget(tree)

    assert await find_outcome(store, change) == (Outcome.CONFLICT, tree.journal)


async def test_another_run_has_begun_under_the_id(store: MemoryStore) -> None:
    """There is no journal of ours, and theirs is none of our business."""
    await store.commit([Writer(store, "run-1").change(created(store, nonce="theirs"))])

    assert await find_outcome(store, new_tree(store, "run-1")) == (Outcome.CONFLICT, 0)


async def test_a_tree_that_was_created_has_forgotten_how(store: MemoryStore) -> None:
    """It is there all the same: another worker has taken it over since, and its starter gets the run."""
    change = new_tree(store, "run-1")
    await store.commit([change])
    tree = await begin_again(store)
    await forget(tree)

    assert await find_outcome(store, change) == (Outcome.COMMITTED, tree.journal)


async def begin_again(store: MemoryStore) -> Writer:
    """A writer of the tree that is there."""
    run = await store.find_run("run-1")
    assert run is not None
    tree = Writer(store, "run-1", nonce=run.nonce)
    tree.journal = run.journal
    await tree.catch_up()
    return tree
