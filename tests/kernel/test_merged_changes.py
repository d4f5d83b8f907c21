"""Changes of one tree in one batch: one change, or apart when the second does not build on the first."""

from __future__ import annotations

from msgspec.structs import fields, replace

from outlive._kernel.model.payload import Blob
from outlive._kernel.runtime.commit.committer import merged
from outlive._kernel.store.contract import Change, Forgotten
from outlive._kernel.store.streams import StreamLines


def change(journal: int, after: int, *, rows: int = 1) -> Change:
    """A change with this many rows."""
    body = [(seq, 1, 0, b"") for seq in range(after + 1, after + 1 + rows)]
    return Change(journal=journal, after=after, prior=0, rows=body, blobs=[Blob(f"{journal}-{after}", b"")])


def test_changes_of_different_trees_stay_as_they_are() -> None:
    """New trees have no handle yet; they are all different."""
    changes = [change(1, 0), change(2, 0), change(0, -1)]

    assert (changes, []) == merged(changes)
    assert ([*changes, change(0, -1), change(3, 0)], [0, 1, 2, 3, 4]) == merged([*changes, change(0, -1), change(3, 0)])


def test_changes_that_build_on_one_another_become_one() -> None:
    """In the order in which they came, beside those of others."""
    whole, where = merged([change(1, 0, rows=2), change(2, 5), change(1, 2), change(1, 3)])

    assert [0, 1, 0, 0] == where
    assert [1, 2, 3, 4] == [row[0] for row in whole[0].rows]
    assert ["1-0", "1-2", "1-3"] == [blob.id for blob in whole[0].blobs]
    assert change(2, 5) == whole[1]


def test_change_of_a_tree_that_was_lost_and_found_stays_apart() -> None:
    """It does not fall with what was said before the tree was lost."""
    whole, where = merged([change(1, 0, rows=3), change(1, 1), change(1, 2)])

    assert [0, 1, 1] == where
    assert [3, 2] == [len(each.rows) for each in whole]


def test_merged_change_has_what_each_emitted_and_rings_for_it() -> None:
    """A reader of a stream misses nothing because two changes went together."""
    lines = [StreamLines(run=0, name=name, lines=()) for name in ("a", "b")]
    (whole,), _ = merged([
        replace(change(1, 0), streams=lines[:1]), replace(change(1, 1), streams=lines[1:], rings="run-1"), change(1, 2),
    ])  # fmt: skip

    assert (lines, "run-1") == (whole.streams, whole.rings)


def test_merged_change_has_the_tags_of_each() -> None:
    """A merged change lists the runs that got new tags in any of its parts."""
    (whole,), _ = merged([replace(change(1, 0), retagged=[0]), replace(change(1, 1), retagged=[2])])

    assert [0, 2] == whole.retagged


def test_merged_change_forgets_what_its_last_snapshot_stands_for() -> None:
    """That is more than what those before it stand for; and it is guarded if they are."""
    first, last = replace(change(1, 0), forgets=Forgotten(1, 2)), replace(change(1, 1), forgets=Forgotten(2, 4))
    (whole,), _ = merged([replace(each, is_guarded=True) for each in (first, last, change(1, 2))])

    assert (whole.forgets, whole.is_guarded) == (Forgotten(2, 4), True)


def test_change_behind_another_row_is_not_merged() -> None:
    """It follows by its seq, and builds on a row that this worker has discarded since."""
    first, second = change(1, 0), replace(change(1, 1), prior=change(1, 0).rows[-1][2] ^ 1)

    assert [first, second] == merged([first, second])[0]


def test_merged_change_names_the_row_before_the_first() -> None:
    """The fence of all of them."""
    (whole,), _ = merged([replace(change(1, 0), prior=7), change(1, 1)])

    assert (0, 7) == (whole.after, whole.prior)


def test_nothing_of_a_change_is_left_out() -> None:
    """Whatever a change may carry has a place in the merged one; a successor and one that begins at once
    are new trees, and only a client reopens one: none of them is merged."""
    assert {field.name for field in fields(Change)} == {
        "journal",
        "after",
        "prior",
        "rows",
        "runs",
        "retagged",
        "requeued",
        "renames",
        "consumed",
        "blobs",
        "answers",
        "items",
        "streams",
        "rings",
        "starts",
        "messages",
        "forgets",
        "is_guarded",
        "successor_of",
        "lives_on",
        "eager",
        "reopens",
        "freed_keys",
        "keys",
        "audit",
    }
