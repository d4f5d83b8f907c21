"""One bit is enough: whichever is flipped, in whichever row of a sample, the checker finds it."""

from __future__ import annotations

import random
from typing import Any

import apsw
import asyncpg
import pytest

from outlive._features.fsck.problem import Kind
from outlive._features.fsck.reading import Reading
from tests.fsck.conftest import Check
from tests.fsck.world import World, each_bit, flip, open_at

SEED = 4
TRIES_MAX = 20
"""For each value, until the database takes one."""
NULLS_MAX = 8
"""Columns that have no value in any row of the sample."""

# For each table: its columns, how a row is named, and which rows are the sample. What is not here cannot be known: a
# message has no checksum, of a worker only its id counts, and the key of a child means nothing.
TABLES: dict[str, tuple[str, str, str]] = {
    "runs": (
        "id journal number root_id parent_id workflow version nonce created_at tags status waits wake_at owner epoch "
        "attempts updated_at finished_at timeout_at reason result failure published approvals",
        "key",
        "id IN ('tree', 'tree~2', 'starter')",
    ),
    "events": ("journal seq format crc is_last body", "journal seq", "seq < 2 AND journal < 5"),
    "items": ('journal run "index" result', 'journal run "index"', '"index" = 2'),
    "blobs": ("id data", "id", "true"),
    "checkpoints": ("run_id sequence format crc body output", "run_id sequence", "true"),
    "tags": ("name value created_at run_key", "name run_key", "true"),
}


@pytest.mark.parametrize("table", TABLES)
async def test_every_flipped_bit_of_a_row_is_found(world: World, check: Check, table: str) -> None:
    """Each column of each row of a sample, some bit of each: none goes unseen. [S22]"""
    columns, names, sample = (words.split() for words in TABLES[table])
    chance = random.Random(f"{SEED} {table}")
    where = " AND ".join(f"{name} = ?" for name in names)
    unseen: list[str] = []
    number = 0
    for column in columns:
        update = f"UPDATE {{{table}}} SET {column} = ? WHERE {where}"
        for *key, value in world.execute(
            f"SELECT {', '.join(names)}, {column} FROM {{{table}}} WHERE {' '.join(sample)}"
        ):
            for _ in range(0 if value in (None, "", b"") else TRIES_MAX):
                flipped = flip(value, chance)
                if not set_to(world, update, flipped, *key):
                    continue  # The database itself refuses such a value.
                number += 1
                if not await check():
                    unseen.append(f"{column} of {key}: {value!r} became {flipped!r}"[:200])
                moved = [flipped if name == column else it for name, it in zip(names, key, strict=True)]
                assert set_to(world, update, value, *moved)
                break

    assert [] == unseen
    assert number >= len(columns) - NULLS_MAX, "almost nothing was tried"


def set_to(world: World, statement: str, *values: Any) -> bool:
    """Change a value; False if the database does not have it."""
    try:
        return bool(world.execute(statement + " RETURNING 1", *values))
    except (apsw.Error, asyncpg.PostgresError):
        return False


async def test_every_single_bit_of_every_event_counts(world: World) -> None:
    """Each bit of each row of a whole journal, one after the other: the reading of the journal is never sound."""
    store = open_at(world.url)
    await store.open()
    run = await store.find_run("tree")
    assert run is not None
    rows = await store.read_journal(run.journal)
    await store.close()

    for place, row in enumerate(rows):
        values: tuple[Any, ...] = row
        for column, value in enumerate(values):
            for flipped in each_bit(value):
                damaged: Any = (*row[:column], flipped, *row[column + 1 :])
                reading = Reading("tree", journal=run.journal, nonce=run.nonce)
                for it in [*rows[:place], damaged, *rows[place + 1 :]]:
                    reading.take(it)
                    if not reading.is_sound:
                        break
                assert {Kind.EVENT} == {problem.kind for problem in reading.problems}, (row, column, flipped)
