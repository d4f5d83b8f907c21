"""What a worker makes of what the store says: whose a run is, how it is claimed again, and what became of a commit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from outlive._kernel.model import RunStatus, generation_id
from outlive._kernel.runtime.commit.retry import find_outcome
from outlive._kernel.runtime.session.claimer import reclaiming
from outlive._kernel.runtime.tree.trees import is_stray
from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.memory import MemoryStore
from outlive.events import RunClaimed
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import Writer, begin, created, follow, get_run, new_tree, stepped

EPOCH = 3


def row_of(**fields: Any) -> Any:
    """The row of a run that this worker has under its third claim."""
    ours = {"journal": 7, "status": RunStatus.RUNNING, "owner": "me", "epoch": EPOCH}
    return SimpleNamespace(**(ours | fields))


@pytest.mark.parametrize(
    ("row", "is_gone"),
    [
        (None, True),
        (row_of(), False),
        (row_of(journal=8), True),
        (row_of(status=RunStatus.CANCELLED, owner=""), True),
        (row_of(owner="", status=RunStatus.WAITING), False),
        (row_of(owner="other", epoch=EPOCH + 1), True),
        (row_of(owner="me", epoch=EPOCH + 1), False),
        (row_of(owner="other", epoch=EPOCH), False),
    ],
    ids=["gone", "ours", "another tree", "ended", "on its way out", "taken over", "claimed again", "old news"],
)
def test_run_is_let_go_of_only_if_it_is_certainly_not_ours(row: Any, *, is_gone: bool) -> None:
    """It was ended, replaced, or claimed by another since; everything else may be what this worker has just said."""
    live: Any = SimpleNamespace(journal=7, fold=SimpleNamespace(root=SimpleNamespace(epoch=EPOCH)))
    assert is_gone == is_stray(live, row, worker_id="me")


@pytest.fixture
async def store() -> MemoryStore:
    """Of one test."""
    return MemoryStore(clock=ManualClock())


async def claimed(tree: Writer, *claims: bool) -> Any:
    """What a claim says of a tree that these claims were made of, by whether each interrupted another worker."""
    epochs = range(1, len(claims) + 1)
    for epoch, interrupted in zip(epochs, claims, strict=True):
        await tree.write(RunClaimed(at=tree.store.now(), worker="me", epoch=epoch, interrupted=interrupted))
    rows = await tree.store.read_journal(tree.journal)
    run = await get_run(tree.store, tree.run_id)
    return reclaiming(run, rows, worker_id="me", at=tree.store.now())


@pytest.mark.parametrize(
    ("claims", "is_orphan"), [((False,), False), ((True,), True), ((True, False), True), ((), False)]
)
async def test_run_that_is_claimed_again_is_still_the_orphan_that_it_was(
    store: MemoryStore, claims: tuple[bool, ...], *, is_orphan: bool
) -> None:
    """No worker has looked yet whether it may go on; and the epoch rises with each claim."""
    tree = await begin(store, "tree")
    change, claim = await claimed(tree, *claims)
    assert is_orphan == claim.interrupted
    assert tree.fold.root.epoch + 1 == claim.run.epoch
    assert (tree.seq, tree.seq + 1, "me") == (change.after, claim.seq, claim.run.owner)
    assert [(Outcome.COMMITTED, tree.journal)] == await store.commit([change])


async def test_run_that_has_moved_since_it_was_taken_over_is_not_an_orphan(store: MemoryStore) -> None:
    """A run that has moved since it was taken over is claimed again without an interruption."""
    tree = await begin(store, "tree")
    await claimed(tree, True)
    await tree.step()
    _, claim = await claimed(tree)
    assert not claim.interrupted


async def test_journal_that_cannot_be_read_makes_no_orphan(store: MemoryStore) -> None:
    """The worker that rebuilds it says that it is damaged."""
    tree = await begin(store, "tree")
    await claimed(tree, True)
    *rows, (seq, kind, crc, data) = await store.read_journal(tree.journal)
    _, claim = reclaiming(tree.fold.root, [*rows, (seq, kind, crc, data[:-3])], worker_id="me", at=store.now())
    assert not claim.interrupted


# -- Commits without an answer -----------------------------------------------------------------------------------------


async def test_change_that_was_not_written_is_not_found(store: MemoryStore) -> None:
    """Neither the birth of a tree nor what it says next."""
    assert await find_outcome(store, new_tree(store, "tree")) is None
    tree = await begin(store, "tree")
    assert await find_outcome(store, tree.change(stepped(store))) is None


async def test_change_that_was_written_is_found(store: MemoryStore) -> None:
    """A change that was committed is found as committed, even if its tree has gone on since."""
    born = new_tree(store, "tree")
    ((_, journal),) = await store.commit([born])
    assert (Outcome.COMMITTED, journal) == await find_outcome(store, born)
    tree = await follow(store, "tree")
    change = tree.change(stepped(store, "a"), stepped(store, "b"))
    await store.commit([change])
    assert (Outcome.COMMITTED, journal) == await find_outcome(store, change)
    await tree.catch_up()
    await tree.step("c")
    assert (Outcome.COMMITTED, journal) == await find_outcome(store, change)
    assert (Outcome.COMMITTED, journal) == await find_outcome(store, born)


async def test_place_that_another_has_taken_is_a_conflict(store: MemoryStore) -> None:
    """Another run of this id, or another worker's event."""
    tree = await begin(store, "tree")
    other = Writer(store, "tree", nonce=1)
    assert (Outcome.CONFLICT, 0) == await find_outcome(store, other.change(created(store, nonce=1)))
    change = tree.change(stepped(store, "mine"))
    await tree.twin().step("another's")
    assert (Outcome.CONFLICT, tree.journal) == await find_outcome(store, change)


async def test_birth_is_found_under_the_name_of_its_generation(store: MemoryStore) -> None:
    """It has gone on as a new one since; a stranger's generation is not ours."""
    born = new_tree(store, "tree")
    ((_, journal),) = await store.commit([born])
    run = await store.find_run("tree")
    assert run is not None
    found: dict[str, Any] = {
        "tree": SimpleNamespace(nonce=run.nonce + 1, journal=journal + 1),
        generation_id("tree", 1): SimpleNamespace(nonce=run.nonce, journal=journal),
    }

    async def find_run(run_id: str) -> Any:
        return found.get(run_id)

    store.find_run = find_run  # type: ignore[method-assign]
    assert (Outcome.COMMITTED, journal) == await find_outcome(store, born)
    found[generation_id("tree", 1)].nonce += 1
    assert (Outcome.CONFLICT, 0) == await find_outcome(store, born)
