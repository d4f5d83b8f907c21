"""Copies of stores that are made while workers write: whole, from one moment, and under their name or not at all."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

import outlive
from outlive._kernel.store.contract import Action
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.sqlite import backup as sqlite_backup
from outlive._kernel.store.sqlite.migrate import migrations
from outlive.cli import main
from outlive.engine.backup import back_up
from outlive.errors import ConfigurationError, OutliveError
from outlive.errors.store import NotADatabaseError
from tests.engine.inside import store_of
from tests.engine.support import Place, waits


@outlive.step
async def backed_up_step(number: int) -> int:
    """Gives its argument back."""
    return number


@outlive.workflow
async def backed_up(number: int = 0) -> str:
    """Waits for a signal."""
    await backed_up_step(number)
    return await outlive.wait_for_signal("go", str)


RUNS = 30


def quiet(line: str) -> None:
    """Says nothing."""


async def write_on(engine: outlive.Engine) -> None:
    """Start runs, one after the other."""
    for count in range(RUNS):
        await engine.start(backed_up, count, id=f"more-{count}")


@pytest.mark.every_store
async def test_a_copy_is_whole_while_workers_write(place: Place, tmp_path: Path) -> None:
    """A copy has the runs, the audit log and the schedules from before its beginning, and the runs go on in it."""
    if place.url.startswith("memory:"):
        with pytest.raises(ConfigurationError, match="belongs to its process"):
            await back_up(place.url, tmp_path / "copy.db", check=True, said=quiet)
        return
    target = tmp_path / "copy.db"
    async with place.engine() as engine:
        run = await engine.start(backed_up, 1, id="first")
        await waits(run)
        await engine.schedules.set("nightly", outlive.every(days=1), backed_up)
        await store_of(engine).append_audit([Action(actor="ann", verb="look")])
        _, made = await asyncio.gather(write_on(engine), back_up(place.url, target, check=True, said=quiet))
        audited = await store_of(engine).read_audit(limit=9)

    assert (made.path, made.size) == (str(target), target.stat().st_size)
    assert made.trees is not None
    assert 1 <= made.trees <= 1 + RUNS
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == ["copy.db"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    async with outlive.Engine(f"sqlite:{target}") as engine:
        assert await store_of(engine).read_audit(limit=9) == audited
        await engine.signal("first", "go", "restored")
        assert await engine.get("first").result(timeout=20) == "restored"
        assert (await engine.schedules.get("nightly")).name == "nightly"


@pytest.mark.every_store
async def test_a_later_commit_is_not_seen_within_one_moment(place: Place) -> None:
    """Within one moment of a PostgreSQL store no verb sees a run that was committed later."""
    store = place.store()
    await store.open()
    if isinstance(store, PostgresStore):
        async with store.one_moment(), place.engine(worker=False) as engine:
            await engine.start(backed_up, id="later")
            assert await store.examiner.list_journals(limit=9) == []
            assert await store.find_run("later") is None
        assert await store.find_run("later") is not None
    await store.close()


async def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither under its name nor under another one; a file that is there is left as it is."""
    store, target = f"sqlite:{tmp_path / 'shop.db'}", tmp_path / "copy.db"
    async with outlive.Engine(store, worker=False) as engine:
        await engine.start(backed_up, 1, id="first")
    before = sorted(tmp_path.iterdir())

    async def damaged(self: object) -> list[str]:
        return ["the page is blue"]

    with monkeypatch.context() as patch:
        patch.setattr("outlive._kernel.store.sqlite.examine.SqliteExaminer.check_database", damaged)
        with pytest.raises(OutliveError, match="the page is blue"):
            await back_up(store, target, check=True, said=quiet)
    (tmp_path / "other.db").write_text("no database")
    with pytest.raises(NotADatabaseError):
        await back_up(f"sqlite:{tmp_path / 'other.db'}", target, check=True, said=quiet)
    with pytest.raises(ConfigurationError, match="exists"):
        await back_up(store, tmp_path / "other.db", check=True, said=quiet)
    with pytest.raises(ConfigurationError, match="no folder"):
        await back_up(store, tmp_path / "none" / "copy.db", check=True, said=quiet)

    after = [path for path in tmp_path.iterdir() if not path.name.endswith(("-wal", "-shm"))]
    assert sorted(after) == sorted([*before, tmp_path / "other.db"])


async def test_a_store_of_an_earlier_release_is_copied_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup comes before an upgrade: it migrates neither store nor copy, and says that it checked nothing."""
    store = f"sqlite:{tmp_path / 'shop.db'}"
    lines: list[str] = []
    async with outlive.Engine(store, worker=False):
        pass
    monkeypatch.setattr(
        "outlive._kernel.store.sqlite.migrate.migrations", lambda: [*migrations(), tmp_path / "9999_next.sql"]
    )

    made = await back_up(store, tmp_path / "copy.db", check=True, said=lines.append)

    assert made.trees is None
    assert "not checked: it has schema" in lines[-1]


def test_the_command_says_what_it_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In small steps; for people and for programs."""
    store = f"sqlite:{tmp_path / 'shop.db'}"
    steps: list[float] = []
    asyncio.run(_make(store))
    monkeypatch.setattr(sqlite_backup, "PAGES_AT_ONCE", 5)
    monkeypatch.setattr(sqlite_backup, "pause", steps.append)

    def ask(*args: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["backup", *args, "--store", store])
        return result.exit_code, result.output

    code, said = ask(str(tmp_path / "a.db"))
    assert (code, "1 tree, whole" in said) == (0, True)
    assert len(steps) > 5
    code, said = ask(str(tmp_path / "b.db"), "--no-check", "--json")
    assert (code, json.loads(said)["trees"]) == (0, None)
    assert ask(str(tmp_path / "a.db"))[0] == 2


async def _make(store: str) -> None:
    async with outlive.Engine(store, worker=False) as engine:
        await engine.start(backed_up, 1, id="first")
