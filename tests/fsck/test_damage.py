"""The checker finds every kind of damage, says whose it is, and mends what follows from the journal."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from outlive._features.fsck.checker import check_store
from outlive._features.fsck.problem import Kind
from outlive._kernel.journal.codec import nonce_in, open_journal, salt_of, seal
from outlive._kernel.journal.event import Event
from outlive.events import RunCreated, StepSucceeded
from tests.fsck.conftest import Check
from tests.fsck.world import SqliteWorld, World, open_at

every_store = pytest.mark.every_store


@every_store
async def test_a_store_that_was_not_touched_is_whole(check: Check) -> None:
    """Whatever is in it."""
    assert [] == await check()


TREE = "(SELECT journal FROM {runs} WHERE id = 'tree')"
WAITS = "(SELECT journal FROM {runs} WHERE id = 'waits')"
WHEEL = "(SELECT journal FROM {runs} WHERE id = 'wheel')"
SNAPSHOT = f"(SELECT min(seq) FROM {{events}} WHERE journal = {WHEEL})"
CHUNK = "(SELECT max(journal) FROM {items})"
SAME = "UPDATE {events} SET "
JOURNALS = {
    "a body": (SAME + f"body = (SELECT body FROM {{events}} WHERE journal = {TREE} AND seq = 3) WHERE journal = {TREE}"
               " AND seq = 4", "tree", "checksum"),
    "a checksum": (SAME + f"crc = crc + 1 WHERE journal = {TREE} AND seq = 2", "tree", "checksum"),
    "a format": (SAME + f"format = format + 1 WHERE journal = {TREE} AND seq = 2", "tree", "checksum"),
    "a seq": (SAME + f"seq = 1000 WHERE journal = {TREE} AND seq = 2", "tree", "missing"),
    "a row that is gone": (f"DELETE FROM {{events}} WHERE journal = {TREE} AND seq = 2", "tree", "missing"),
    "the first row": (f"DELETE FROM {{events}} WHERE journal = {TREE} AND seq = 0", "tree", "missing"),
    "a snapshot": (f"DELETE FROM {{events}} WHERE journal = {WHEEL} AND seq = {SNAPSHOT}", "wheel", "missing"),
    "what a snapshot says": (SAME + f"crc = crc + 1 WHERE journal = {WHEEL} AND seq = {SNAPSHOT}", "wheel", "checksum"),
    "the end": (f"DELETE FROM {{events}} WHERE journal = {TREE} AND seq > 5", "tree", "its end is lost"),
    "a mark of the end": (SAME + f"is_last = NOT is_last WHERE journal = {TREE} AND seq = 1", "tree", "marked"),
    "no mark of the end": (SAME + f"is_last = NOT is_last WHERE journal = {TREE} AND is_last", "tree", "marked"),
    "an early end": (SAME + f"is_last = NOT is_last WHERE journal = {WAITS} AND seq = 1", "waits", "marked"),
}  # fmt: skip


JOURNALS_ON_A_SERVER = ["a body", "a row that is gone", "a snapshot", "no mark of the end"]
"""Of every column that is read one: what is wrong with an event is judged in one place for all stores."""


@pytest.mark.parametrize(
    "what", [pytest.param(it, marks=every_store if it in JOURNALS_ON_A_SERVER else ()) for it in JOURNALS]
)
async def test_a_damaged_journal_is_found_and_never_repaired(world: World, check: Check, what: str) -> None:
    """The check names the damaged event, and leaves rows alone that only this journal could repair."""
    statement, run_id, complaint = JOURNALS[what]
    world.damage(statement)
    before = world.execute("SELECT journal, seq, crc, body FROM {events} ORDER BY journal, seq")
    rows = world.execute("SELECT * FROM {runs} ORDER BY key")

    problems = await check(repair=True)

    assert any(complaint in it.what and it.kind is Kind.EVENT for it in problems), problems
    assert {run_id} == {it.run_id.partition("~")[0] for it in problems}
    assert not any(it.is_repaired for it in problems)
    assert before == world.execute("SELECT journal, seq, crc, body FROM {events} ORDER BY journal, seq")
    assert rows == world.execute("SELECT * FROM {runs} ORDER BY key")


@every_store
@pytest.mark.parametrize(
    ("run_id", "kind"),
    [("tree", StepSucceeded), ("wheel", StepSucceeded), ("failed", RunCreated), ("relay~gen1", StepSucceeded)],
)
async def test_an_end_that_another_journal_led_to_is_found(
    world: World, check: Check, run_id: str, kind: type[Event]
) -> None:
    """Every event verifies, and the rows are what they tell: a worker that had another past in memory wrote the end."""
    journal = world.journal(run_id)
    rows = [
        (int(seq), int(format_), int(crc), bytes(body))
        for seq, format_, crc, body in world.execute(
            "SELECT seq, format, crc, body FROM {events} WHERE journal = ? ORDER BY seq", journal
        )
    ]
    nonce = nonce_in(rows[0])
    assert nonce is not None
    events = open_journal(rows, nonce=nonce, run_id=run_id)
    place = max(number for number, event in enumerate(events) if isinstance(event, kind))
    seq, _, crc, body = seal(replace(events[place], digest=77), salt=salt_of(nonce), seq=rows[place][0])
    world.execute("UPDATE {events} SET crc = ?, body = ? WHERE journal = ? AND seq = ?", crc, body, journal, seq)

    (problem,) = await check(repair=True)

    assert (problem.run_id, problem.kind, problem.seq) == (run_id, Kind.EVENT, rows[-1][0])
    assert "the worker had other events before it" in problem.what


def row(column: str, value: str, run_id: str = "tree") -> str:
    """Damage of one column of a run row."""
    return f"UPDATE {{runs}} SET {column} = {value} WHERE id = '{run_id}'"


ROWS = {
    "status": (row("status", "'failed'"), "status is"),
    "no status": (row("status", "'sucseeded'"), "cannot be read"),
    "wake_at": (row("wake_at", "1"), "wake_at is 1"),
    "no wake_at": (row("wake_at", "NULL", "new"), "wake_at is None"),
    "owner": (row("owner", "'missing'", "new"), "owner is"),
    "no owner": (row("owner", "''", "owned"), "owner is"),
    "epoch": (row("epoch", "epoch + 1"), "epoch is"),
    "attempts": (row("attempts", "3"), "attempts is"),
    "nonce": (row("nonce", "nonce + 1"), "another checksum"),
    "workflow": (row("workflow", "'other'"), "workflow is"),
    "version": (row("version", "2"), "version is"),
    "created_at": (row("created_at", "created_at - 1"), "created_at is"),
    "updated_at": (row("updated_at", "updated_at + 1"), "updated_at is"),
    "finished_at": (row("finished_at", "NULL"), "finished_at is"),
    "timeout_at": (row("timeout_at", "1"), "timeout_at is"),
    "result": (row("result", "'{\"v\":-1}'"), "result is"),
    "no result": (row("result", "'{'"), "cannot be read"),
    "failure": (row("failure", '\'{"type":"x"}\'', "failed"), "failure is"),
    "published": (row("published", "NULL"), "published is"),
    "reason": (row("reason", "'none'", "parked"), "reason is"),
    "waits": (row("waits", "NULL", "starter"), "waits is"),
    "tags": (row("tags", "NULL"), "tags is"),
    "id": (row("id", "'other'"), "id is"),
    "root_id": (row("root_id", "'other'"), "root_id is"),
    "journal": (row("journal", "100000", "new"), "journal is 100000"),
    "number": (row("number", "-1", "new"), "is in the journal and has no row"),
    "parent of a child": (row("parent_id", "'tree~1'", "tree~2"), "parent_id is"),
    "root of a child": (row("root_id", "'waits'", "tree~2"), "root_id is"),
    "number of a child": (row("number", "7", "tree~2"), "has a row and is not in the journal"),
    "a child that is gone": ("DELETE FROM {runs} WHERE id = 'tree~2'", "is in the journal and has no row"),
    "a tag that finds no run": ("DELETE FROM {tags} WHERE name = 'shop'", "is not found by its tag 'shop'"),
}


ON_A_SERVER = ["no status", "id", "journal", "number of a child", "a child that is gone", "a tag that finds no run"]
"""Of every kind of repair one. Which field of a row it was makes no difference: a whole row is written."""


@pytest.mark.parametrize("what", [pytest.param(it, marks=every_store if it in ON_A_SERVER else ()) for it in ROWS])
async def test_a_row_that_is_not_what_the_journal_tells_is_repaired(world: World, check: Check, what: str) -> None:
    """It is reported with its run and written again; then the store is whole, and no journal was touched."""
    statement, complaint = ROWS[what]
    rows = world.execute("SELECT * FROM {runs} ORDER BY key") if "number" not in what and "gone" not in what else None
    world.damage(statement)
    events = world.execute("SELECT * FROM {events} ORDER BY journal, seq")

    problems = await check()
    assert any(complaint in it.what for it in problems), problems
    assert 1 == len({it.journal for it in problems if it.kind is not Kind.DATABASE})

    repaired = await check(repair=True)
    assert all(it.is_repaired for it in repaired if it.kind is not Kind.DATABASE), repaired
    assert [] == await check()
    assert events == world.execute("SELECT * FROM {events} ORDER BY journal, seq")
    assert rows in (None, world.execute("SELECT * FROM {runs} ORDER BY key"))


@every_store
async def test_a_row_that_the_journal_knows_nothing_of_is_removed(world: World, check: Check) -> None:
    """A row of a child that no event has created is removed."""
    columns = (
        "journal, root_id, parent_id, workflow, version, nonce, status, owner, epoch, attempts, created_at, updated_at"
    )
    world.damage(
        f"INSERT INTO {{runs}} (id, number, reason, {columns}) SELECT 'tree~9', 9, '', {columns} FROM {{runs}} "
        "WHERE id = 'tree~2'"
    )

    (problem,) = await check(repair=True)

    assert ("tree~9", "has a row and is not in the journal", True) == (
        problem.run_id,
        problem.what,
        problem.is_repaired,
    )
    assert [] == await check()


OTHERS = {
    "a root that is gone": ("DELETE FROM {runs} WHERE id = 'tree'", Kind.ORPHAN, "root has no row"),
    "a journal that is gone": (f"DELETE FROM {{events}} WHERE journal = {TREE}", Kind.ORPHAN, "no journal"),
    "a key of a row": ("UPDATE {runs} SET key = 100000 WHERE id = 'new'", Kind.ORPHAN, "no journal"),
    "an event of no tree": ("UPDATE {events} SET journal = 100000 WHERE seq = 2 AND journal = " + TREE, Kind.ORPHAN,
                           "its root has no row"),
    "mail of no tree": ("UPDATE {inbox} SET journal = 100000", Kind.ORPHAN, "not there"),
    "mail for no run": ("UPDATE {inbox} SET run = 5", Kind.MAIL, "for run 5, which is not there"),
    "mail of no kind": ("UPDATE {inbox} SET kind = 'whistle'", Kind.MAIL, "of no kind"),
    "mail that says nothing": ("UPDATE {inbox} SET payload = '{'", Kind.MAIL, "cannot be read"),
    "a key that is forgotten": ("DELETE FROM {inbox_keys} WHERE key LIKE '%key-1'", Kind.MAIL, "is forgotten"),
    "a key of mail that is forgotten": ("DELETE FROM {inbox_keys} WHERE key LIKE '%key-2'", Kind.MAIL, "is forgotten"),
    "a key of an ask that is gone": ("DELETE FROM {inbox_keys} WHERE key LIKE '%key-3'", Kind.MAIL, "is forgotten"),
    "an answer that is lost": ("UPDATE {inbox_keys} SET answer = NULL", Kind.MAIL, "answer to the ask with the key"),
    "keys of no tree": ("UPDATE {inbox_keys} SET journal = 100000", Kind.ORPHAN, "not there"),
    "a blob that is gone": ("DELETE FROM {blobs}", Kind.BLOB, "is missing"),
    "an item that is gone": ("DELETE FROM {items} WHERE index = 2", Kind.ITEM, "4 outcomes of items are stored"),
    "an item out of range": ("UPDATE {items} SET index = 9 WHERE index = 2", Kind.ITEM, "only 5 of them"),
    "an item before the first": ("UPDATE {items} SET index = -1 WHERE index = 2", Kind.ITEM, "has the index -1"),
    "an item with another result": ("UPDATE {items} SET result = '{\"v\":5}' WHERE index = 2", Kind.ITEM,
                                    "1 outcomes of items are not what the journal tells"),
    "an item that says nothing": ("UPDATE {items} SET result = '{' WHERE index = 2", Kind.ITEM, "cannot be read"),
    "items of no tree": ("UPDATE {items} SET journal = 100000", Kind.ORPHAN, "not there"),
    "items of no run": ("UPDATE {items} SET run = 3", Kind.ITEM, "the journal tells of 0"),
    "an owner without a session": ("DELETE FROM {workers} WHERE id = 'anvil'", Kind.OWNER, "anvil is not a worker"),
    "a checkpoint that was moved": ("UPDATE {checkpoints} SET run_id = 'import-2' WHERE sequence = 9", Kind.CHECKPOINT,
                                    "checkpoint 9: checksum does not match"),
    "an empty output that is none": ("UPDATE {checkpoints} SET output = NULL WHERE run_id = 'tree'", Kind.CHECKPOINT,
                                     "checkpoint 4: checksum does not match"),
    "a tag of no run": ("INSERT INTO {tags} (name, value, created_at, run_key) VALUES ('a', 'b', 1, 100000)",
                        Kind.DATABASE, "found by the tag 'a'"),
    "an item of a stream": (f"UPDATE {{stream_chunks}} SET body = (SELECT body FROM {{events}} WHERE journal = {TREE}"
                            " AND seq = 0)", Kind.STREAM, "a line has another checksum"),
    "a stream without items": ("DELETE FROM {stream_chunks}", Kind.STREAM, "ends at 1, and 0 items are stored"),
    "a stream of no tree": ("UPDATE {streams} SET journal = 100000", Kind.ORPHAN, "streams hang on a tree"),
    "items of no stream": ("UPDATE {stream_chunks} SET stream = 100000", Kind.DATABASE, "hang on the key 100000"),
    "a wait of no run": ("INSERT INTO {waits} (name, created_at, run_key) VALUES ('a', 1, 100000)", Kind.DATABASE,
                         "is found by waiting for 'a', which it does not"),
    "a wait that finds no run": ("DELETE FROM {waits} WHERE name = 'never'", Kind.DATABASE,
                                 "waits for 'never', and is not found by it"),
}  # fmt: skip


@every_store
@pytest.mark.parametrize("what", OTHERS)
async def test_damage_that_no_journal_can_repair_is_found(world: World, check: Check, what: str) -> None:
    """The check reports the damage, and repairs nothing."""
    statement, kind, complaint = OTHERS[what]
    world.damage(statement.replace("index", '"index"'))

    problems = await check(repair=True)

    assert any(it.kind is kind and complaint in it.what for it in problems), problems
    assert not any(it.is_repaired for it in problems if it.kind is kind)


async def test_checkpoints_of_an_id_that_is_not_text_any_more_are_found(sqlite_source: Path, tmp_path: Path) -> None:
    """Checkpoints of an id that is not text any more are reported, and those behind them are checked."""
    world = SqliteWorld(sqlite_source, tmp_path)
    world.damage("UPDATE {checkpoints} SET run_id = CAST(x'69ff' AS TEXT) WHERE sequence = 9")
    world.damage("UPDATE {checkpoints} SET crc = 0 WHERE run_id = 'tree'")

    store = open_at(world.url)
    await store.open()
    problems = await check_store(store)
    await store.close()

    assert [(it.kind, it.what) for it in problems] == [
        (Kind.CHECKPOINT, "checkpoints of an id that is no longer text"),
        (Kind.CHECKPOINT, "checkpoint 4: checksum does not match"),
    ]


@every_store
async def test_a_blob_with_another_content_is_found(world: World, check: Check) -> None:
    """Its id is the hash of what it should be; the message that refers to one counts too."""
    damaged = {f"blob {id} is damaged" for (id,) in world.execute("SELECT id FROM {blobs}")}
    world.execute("UPDATE {blobs} SET data = ?", b"other")

    problems = await check()

    assert {Kind.BLOB} == {it.kind for it in problems}
    assert {it.what for it in problems} <= damaged
    assert {"tree", "waits", "batch~chunk1"} == {it.run_id for it in problems}


@every_store
async def test_message_that_no_worker_will_read_is_found_and_delivered(world: World, check: Check) -> None:
    """A message waits, and its run is due for no worker: that is a lost wake-up."""
    world.damage("UPDATE {runs} SET wake_at = 9000000000000000 WHERE id = 'waits'")

    problems = await check()
    assert any(it.kind is Kind.WAKE and "1 messages wait" in it.what for it in problems), problems

    assert all(it.is_repaired for it in await check(repair=True))
    assert [] == await check()


@every_store
async def test_an_end_that_its_starter_did_not_get_is_found(world: World, check: Check) -> None:
    """A run waits for another one that has ended, and the message is lost: it is woken, and asks."""
    world.damage("UPDATE {runs} SET status = 'cancelled' WHERE id = 'apart'")

    problems = await check()

    assert any(it.kind is Kind.WAKE and it.run_id == "starter" for it in problems), problems
