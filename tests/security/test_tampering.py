"""`audit verify` notices every change of the log that a person with access to the database can make behind its back."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import asyncpg
import pytest

import outlive
from tests.engine.inside import record_action

COLUMNS = {"number": "number + 100", "at": "at + 1", "actor": "'bob'", "verb": "'look'", "target": "'x'"}
COLUMNS |= {"body": "replace(body, 'ann', 'bob')", "hash": "replace(hash, substr(hash, 1, 8), '00000000')"}
CHANGES = {
    f"the {name} is changed": f"UPDATE {{table}} SET {name} = {value} WHERE number = 3"
    for name, value in COLUMNS.items()
}
CHANGES |= {
    "a row is deleted": "DELETE FROM {table} WHERE number = 3",
    "the first rows are deleted": "DELETE FROM {table} WHERE number < 3",
    "a row is put in": (
        "INSERT INTO {table} SELECT number + 10, at, actor, verb, target, body, hash FROM {table} WHERE number = 5"
    ),
    "an action is hidden behind another name": (
        "UPDATE {table} SET actor = 'eve', target = 'nothing' WHERE number = 5"
    ),
}


NO_TEXT = {
    f"the {name} is not text": f"UPDATE {{table}} SET {name} = CAST(x'ff' AS TEXT) WHERE number = 3"
    for name in ("body", "hash", "actor", "verb", "target")
}
"""SQLite takes it; PostgreSQL does not."""


@pytest.mark.parametrize("change", CHANGES | NO_TEXT)
async def test_a_changed_log_in_a_file_is_found(tmp_path: Path, change: str) -> None:
    """Each column of a row, also those by which rows are only found. [S37]"""
    file = tmp_path / "runs.db"
    async with outlive.Engine(f"sqlite:{file}", worker=False) as engine:
        with engine.audit.acting("ann"):
            for number in range(5):
                await record_action(engine, "export", f"run-{number}")
        head = (await engine.audit.verify()).head
    connection = sqlite3.connect(file)
    with connection:
        connection.execute((CHANGES | NO_TEXT)[change].format(table="outlive_audit"))
    connection.close()

    async with outlive.Engine(f"sqlite:{file}", worker=False) as engine:
        assert (await engine.audit.verify(since=head)).problems
        assert await engine.audit.list()


async def test_a_changed_log_in_a_database_is_found(postgres_url: str) -> None:
    """A change of any column of the audit log on PostgreSQL is found. [S37]"""
    async with outlive.Engine(postgres_url, worker=False) as engine:
        with engine.audit.acting("ann \1"):
            for number in range(5):
                await record_action(engine, "export", f"run-{number}")
        assert (await engine.audit.verify()).is_whole
        address, _, options = postgres_url.partition("?")
        schema = dict(parse_qsl(options))["schema"]
        connection: Any = await asyncpg.connect(address)
        found: dict[str, bool] = {}
        for change, statement in CHANGES.items():
            saved = await connection.fetch(f"SELECT * FROM {schema}.audit")
            await connection.execute(statement.format(table=f"{schema}.audit"))
            found[change] = not (await engine.audit.verify()).is_whole
            await connection.execute(f"DELETE FROM {schema}.audit")
            await connection.copy_records_to_table("audit", schema_name=schema, records=saved)
        await connection.close()
        assert (await engine.audit.verify()).is_whole

    assert found == dict.fromkeys(CHANGES, True)
