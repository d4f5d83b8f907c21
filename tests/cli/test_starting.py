"""The options of a start: one table for every command that starts runs, with the names that `engine.start` has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from click.testing import CliRunner, Result

import outlive
from outlive._features.batches.starting import BatchOptions
from outlive._kernel.client.start_options import OnConflict, StartOptions
from outlive._kernel.define.registry import REGISTRY
from outlive.cli import main
from outlive.cli.starting import OPTIONS
from outlive.testing import TestEngine
from tests.cli.serving import served

PROGRAM = """\
import outlive

@outlive.workflow
async def cli_started(n: int) -> int:
    return n
"""
NOT_OF_A_BATCH = {
    "tolerate": "an item that fails stops nothing: each has its line, and the exit code says that one has failed",
    "connection": "a command has no transaction of yours",
}
HOUR = timedelta(hours=1)
GIVEN = (
    *("--queue", "own", "--key", "ann", "--tag", "a=b", "--header", "who=me", "--timeout", "5m"),
    *("--delay", "1h", "--begin-within", "2h"),
)


@outlive.workflow
async def cli_by_name(n: int, who: str = "") -> str:
    """Waits for a signal, or is asked."""
    async for ask in outlive.asks("add", int):
        ask.reply(n + ask.body)
        return who
    return ""


def options_of(*path: str) -> dict[str, click.Parameter]:
    """The options of a command by the names that it is given them by."""
    command: click.Command = main
    for word in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    return {str(it.name): it for it in command.params if isinstance(it, click.Option)}


def test_the_table_has_the_options_of_a_start() -> None:
    """An option that comes to `engine.start` is missing here until every command takes it."""
    conflicts = options_of("runs", "start")["on_conflict"].type

    assert OPTIONS.keys() == StartOptions.__annotations__.keys()
    assert isinstance(conflicts, click.Choice)
    assert tuple(conflicts.choices) == get_args(OnConflict)


@pytest.mark.parametrize("path", [("run",), ("runs", "start"), ("flows", "run")], ids=" ".join)
def test_every_command_that_starts_a_run_takes_all_of_them(path: tuple[str, ...]) -> None:
    """A person can say on the command line what a program and a request can say."""
    assert OPTIONS.keys() <= options_of(*path).keys()


def test_a_batch_of_a_flow_takes_the_options_of_a_batch() -> None:
    """The options that no command takes have a reason here."""
    named = {"batch_id": "id"}
    taken = {named.get(name, name) for name in options_of("flows", "batch")}

    assert BatchOptions.__annotations__.keys() - taken == NOT_OF_A_BATCH.keys()


@pytest.fixture
def give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    """Gives commands in a folder with a program and a flow."""
    (tmp_path / f"cli_{tmp_path.name}.py").write_text(PROGRAM)
    (tmp_path / "plain.flow.yaml").write_text("name: cli-plain\nsteps: { a: { use: noop, with: 1 } }\n")
    (tmp_path / "rows.jsonl").write_text("{}\n{}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OUTLIVE_STORE", "sqlite:runs.db")

    def give(*args: str) -> Result:
        return CliRunner().invoke(main, [word.replace("PROGRAM", f"cli_{tmp_path.name}.py") for word in args])

    with REGISTRY.forgetting():
        yield give


async def only_run() -> Any:
    """The one run of the store, with what its start says."""
    async with outlive.Engine("sqlite:runs.db", worker=False) as engine:
        (run,) = await engine.list(internal=True, roots_only=True)
        return run, (await engine.history(run.id))[0].data


@pytest.mark.parametrize(
    "command", [("run", "PROGRAM", "7"), ("flows", "run", "plain.flow.yaml")], ids=["run", "flows run"]
)
def test_a_run_is_started_as_its_options_say(give: Callable[..., Result], command: tuple[str, ...]) -> None:
    """Its place, its tags, its headers and its times are those of the command line."""
    said = give(*command, "--id", "mine", *GIVEN, "--detach", "--store", "sqlite:runs.db")
    refused = give(*command, "--id", "mine", "--on-conflict", "reject", "--detach", "--store", "sqlite:runs.db")
    run, data = asyncio.run(only_run())

    assert (said.exit_code, said.stdout) == (0, "mine\n"), said.output
    assert (run.id, run.queue, run.queue_key, run.tags["a"]) == ("mine", "own", "ann", "b")
    assert data["headers"] == {"who": "me"}
    waits = (data["start_at"] - run.created_at).total_seconds()
    assert waits == pytest.approx(3600, abs=1)
    assert [data[name] - data["start_at"] for name in ("begin_by", "timeout_at")] == [2 * HOUR, HOUR / 12]
    assert refused.exit_code == 1
    assert "run 'mine' exists already" in refused.stderr


def test_a_batch_of_a_flow_waits_in_its_queue(give: Callable[..., Result]) -> None:
    """Its items have the place and the tags of the command line."""
    said = give(
        *("flows", "batch", "plain.flow.yaml", "rows.jsonl", "--id", "b-1", "--store", "sqlite:runs.db"),
        *("--queue", "own", "--key", "ann", "--tag", "a=b"),
    )

    async def found() -> Any:
        async with outlive.Engine("sqlite:runs.db", worker=False) as engine:
            runs = await engine.list(internal=True)
            return [run.tags for run in runs if run.id == "b-1"], {run.queue_key for run in runs if run.queue == "own"}

    assert said.exit_code == 0, said.output
    assert asyncio.run(found()) == ([{"a": "b"}], {"ann"})
    assert give("flows", "batch", "plain.flow.yaml", "rows.jsonl", "--retry-failed", "b-1", "--key", "x").exit_code == 2


def test_wrong_options_are_one_line(give: Callable[..., Result]) -> None:
    """With what to write instead."""
    for args, words in [
        (("--tag", "a"), "--tag a: write it as NAME=VALUE"),
        (("--header", "=a"), "--header =a: write it as NAME=VALUE"),
        (("--delay", "soon"), "--delay soon: write a number and a unit"),
        (("--start-at", "2h"), "--start-at 2h: it is not a time; write 2026-11-01 or"),
        (("--delay", "2h", "--start-at", "2026-11-01"), "give --delay or --start-at, not both"),
        (("--priority", "high"), "'high' is not a valid integer"),
        (("--on-conflict", "retry"), "'retry' is not one of"),
    ]:
        refused = give("run", "PROGRAM", "7", *args)
        assert (refused.exit_code, words in refused.stderr) == (2, True), refused.output


async def test_a_workflow_is_started_by_its_name_on_a_server() -> None:
    """The command needs neither its code nor the store, and a message may create the run that it is for."""
    async with TestEngine() as engine, served(engine) as url:

        async def typed(*args: str) -> Result:
            return await asyncio.to_thread(CliRunner().invoke, main, [*args, "--server", url])

        started = await typed("runs", "start", "cli_by_name", '{"n": 4}', "--id", "c-1", "--tag", "a=b")
        again = await typed("runs", "start", "cli_by_name", "[4]", "--id", "c-1", "--on-conflict", "reject")
        shown = await typed("runs", "start", "cli_by_name", "[4]", "--id", "c-1", "--json")
        unknown = await typed("runs", "start", "cli_by_nam", "[4]")
        assert (started.exit_code, started.stdout) == (0, "c-1\n"), started.output
        assert (await engine.get("c-1").info()).tags == {"a": "b"}
        assert (again.exit_code, json.loads(shown.stdout)) == (1, {"id": "c-1"})
        assert (unknown.exit_code, "did you mean cli_by_name?" in unknown.stderr) == (1, True), unknown.stderr

        asked = await typed(
            *("ask", "c-2", "add", "3", "--start", "cli_by_name", "--input", '{"n": 4, "who": "b"}', "--header", "x=y")
        )
        assert (asked.exit_code, asked.stdout) == (0, "7\n"), asked.output
        assert await engine.get("c-2").result() == "b"
        assert (await engine.history("c-2"))[0].data["headers"]["x"] == "y"
        sent = await typed("signal", "c-3", "go", "1", "--start", "cli_by_name", "--input", "[4]")
        alone = await typed("signal", "c-4", "go", "--input", "[4]")
        assert (sent.exit_code, (await engine.info("c-3")).workflow) == (0, "cli_by_name"), sent.output
        assert (alone.exit_code, "give --start WORKFLOW too" in alone.stderr) == (2, True)
