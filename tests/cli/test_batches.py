"""`outlive batches`, and verbs with filters that workers carry out."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import outlive
from outlive.cli import main
from outlive.engine import Engine
from tests.cli.serving import served
from tests.engine.support import in_time, reaches


class World:
    """What steps find."""

    is_repaired = False


world = World()


@outlive.step
async def sold_ship(number: int) -> int:
    """Fails for odd numbers until it is repaired."""
    if number % 2 and not world.is_repaired:
        raise ValueError(f"no truck for {number}")
    return number


@outlive.workflow
async def sold_order(number: int) -> int:
    """One order."""
    return await sold_ship(number)


async def command(*args: str, place: str) -> Result:
    """What a command says, while an engine runs here."""
    where = {"OUTLIVE_SERVER" if place.startswith("http") else "OUTLIVE_STORE": place}
    return await asyncio.to_thread(CliRunner().invoke, main, list(args), env=where)


@pytest.mark.parametrize("behind", ["store", "server"])
async def test_batches_are_listed_with_what_failed_and_retried(tmp_path: Path, behind: str) -> None:
    """On the store, and through a server."""
    world.is_repaired = False
    url = f"sqlite:{tmp_path}/runs.db"
    async with Engine(url) as engine, served(engine) as address:
        place = address if behind == "server" else url
        batch = await engine.start_batch(sold_ship, range(4), id="b")
        await in_time(batch.result())
        info = await batch.info()
        assert (info.total, info.succeeded, info.failed, info.work) == (4, 2, 2, "sold_ship")

        listed = await command("batches", "list", place=place)
        assert listed.stdout.splitlines()[1].split() == ["b", "sold_ship", "succeeded", "2", "2", "4"]
        shown = await command("batches", "show", "b", place=place)
        assert [line.split(maxsplit=2) for line in shown.stdout.splitlines()[2:]] == [
            ["1", "ValueError", "no truck for 1"],
            ["3", "ValueError", "no truck for 3"],
        ]
        plain = json.loads((await command("batches", "show", "b", "--json", place=place)).stdout)
        assert [it["index"] for it in plain["failed"]] == [1, 3]

        world.is_repaired = True
        retried = await command("batches", "retry", "b", "--id", "again", place=place)
        assert (retried.exit_code, retried.stdout) == (0, "again\n")
        assert await in_time(engine.batches.get("again").results()) == [1, 3]
        plain = json.loads((await command("batches", "list", "--status", "succeeded", "--json", place=place)).stdout)
        assert [(it["id"], it["failed"]) for it in plain["batches"]] == [("again", 0), ("b", 2)]


@pytest.mark.parametrize("behind", ["store", "server"])
async def test_verb_with_filters_is_one_operation_of_the_workers(tmp_path: Path, behind: str) -> None:
    """The command follows it, names what refused, and its exit code says so."""
    world.is_repaired = False
    url = f"sqlite:{tmp_path}/runs.db"
    async with Engine(url) as engine, served(engine) as address:
        place = address if behind == "server" else url
        for number in (1, 3):
            await reaches(await engine.start(sold_order, number, id=f"o-{number}"), "failed")
        world.is_repaired = True
        done = await command("runs", "retry", "--workflow", "sold_order", "--reason", "truck", "--yes", place=place)
        assert (done.exit_code, done.stdout) == (0, "")
        assert "2 runs retried" in done.stderr
        assert [await in_time(engine.get(f"o-{number}").result()) for number in (1, 3)] == [1, 3]

        (operation,) = await engine.bulk.list()
        assert (operation.verb, operation.done, operation.reason) == ("retry", 2, "truck")
        shown = await command("runs", "operations", place=place)
        assert shown.stdout.splitlines()[1].split()[:5] == [operation.id, "retry", "succeeded", "2", "0"]
        plain = json.loads((await command("runs", "operations", operation.id, "--json", place=place)).stdout)
        assert (plain[0]["done"], plain[0]["refusals"]) == (2, [])
        everything = await command("runs", "list", "--json", place=place)
        assert {run["workflow"] for run in json.loads(everything.stdout)["runs"]} == {"sold_order"}
        internal = await command("runs", "list", "--internal", "--json", place=place)
        assert "outlive.bulk" in {run["workflow"] for run in json.loads(internal.stdout)["runs"]}


async def test_purge_is_done_by_workers_unless_it_writes_an_archive(tmp_path: Path) -> None:
    """A purge goes on without its command where a worker is alive; runs that the engine made for itself go with the
    rest. The command has the files of an archive at hand, so it writes these itself."""
    world.is_repaired = True
    url = f"sqlite:{tmp_path}/runs.db"
    async with Engine(url) as engine:
        for number in range(3):
            await in_time((await engine.start(sold_order, number, id=f"o-{number}")).result())
        await in_time((await engine.bulk.start("cancel", workflow="nothing")).result())
        ended = ["runs", "purge", "--status", "succeeded", "--older-than", "0s"]

        archived = await command(*ended, "--id-prefix", "o-0", "--archive", str(tmp_path / "old"), "--yes", place=url)
        assert "archived in" in archived.stdout
        assert len(await engine.bulk.list()) == 1
        assert "3 runs would be deleted" in (await command(*ended, place=url)).stdout
        done = await command(*ended, "--limit", "3", "--yes", place=url)

        assert (done.exit_code, done.stdout) == (0, "")
        assert "3 runs deleted" in done.stderr
        (operation,) = await engine.bulk.list()
        assert (operation.verb, operation.done) == ("purge", 3)
        assert [run.id for run in await engine.list(internal=True)] == [operation.id]
        refused = await command("runs", "purge", "--status", "running", "--yes", place=url)
        assert refused.exit_code == 2
        assert "only runs that ended go" in refused.stderr
