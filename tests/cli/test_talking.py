"""`outlive signal`, `ask`, `approve`, `reject`, `approvals`, `events` and `workflows`, on a store with a worker."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest
from click.testing import CliRunner, Result

import outlive
from outlive._kernel.define.registry import REGISTRY
from outlive.cli import main
from outlive.engine import Engine
from outlive.types import WorkerOptions

Say = Callable[..., Awaitable[Result]]


@dataclass
class TalkedPayment:
    """What is paid."""

    cents: int


@outlive.workflow
async def talked(order: str) -> list[str]:
    """Hears a signal, answers an ask, and asks for two approvals."""
    payment = await outlive.wait_for_signal("paid", TalkedPayment)
    async for ask in outlive.asks("total", int):
        ask.reply(payment.cents + ask.body)
        break
    first = await outlive.wait_for_approval("refund", title=f"Refund {order}?", assignees=["finance"])
    second = await outlive.wait_for_approval("ship")
    return [f"{answer.approved} {answer.by} {answer.comment}" for answer in (first, second)]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """A worker on a file."""
    async with Engine(f"sqlite:{tmp_path / 'talk.db'}", worker=WorkerOptions(schedules=False, flows=False)) as engine:
        yield engine


@pytest.fixture
def say(engine: Engine) -> Say:
    """Gives a command about its store."""

    async def say(*args: str) -> Result:
        env = {"OUTLIVE_STORE": engine.url, "USER": "ann"}
        return await asyncio.to_thread(CliRunner().invoke, main, list(args), env=env)

    return say


async def asks_for(run: outlive.types.RunHandle[Any], name: str) -> None:
    """Return when a run asks for an approval."""
    async for entry in run.follow():
        if entry.type == "ApprovalRequested" and entry.data["name"] == name:
            return


async def test_a_person_talks_to_a_run(engine: Engine, say: Say) -> None:
    """Signal, ask, approve and reject, each durable when the command returns."""
    run = await engine.start(talked, "o-1", id="talk-1")

    assert (await say("signal", "talk-1", "paid", '{"cents": 5}', "--key", "k")).stdout == (
        "signal paid is sent to run talk-1\n"
    )
    assert json.loads((await say("ask", "talk-1", "total", "7")).stdout) == 12
    await asks_for(run, "refund")
    listed = json.loads((await say("approvals", "list", "--json")).stdout)["approvals"]
    assert (listed[0]["run_id"], listed[0]["title"], listed[0]["assignees"]) == ("talk-1", "Refund o-1?", ["finance"])
    table = (await say("approvals", "list", "--assignee", "finance")).stdout.splitlines()
    assert table[0].split() == ["RUN", "APPROVAL", "STATUS", "AGE", "ASSIGNEES", "TITLE"]

    approved = await say("approve", "talk-1", "refund", "--comment", "fine")
    assert approved.stdout == "approval refund of run talk-1 is approved by ann\n"
    late = await say("reject", "talk-1", "refund", "--by", "bob")
    assert (late.exit_code, "was approved by ann before" in late.stderr) == (1, True)
    await asks_for(run, "ship")
    assert (await say("reject", "talk-1", "ship", "--by", "bob", "--json")).exit_code == 0
    assert await run.result() == ["True ann fine", "False bob "]
    decided = json.loads((await say("approvals", "list", "--run", "talk-1", "--json")).stdout)["approvals"]
    assert [it["status"] for it in decided] == ["approved", "rejected"]


async def test_a_decision_is_that_of_the_user_also_where_no_variable_names_one(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container, and in a job of cron."""
    for variable in ("USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    run = await engine.start(talked, "o-3", id="talk-3")
    await engine.signal("talk-3", "paid", TalkedPayment(5))
    await engine.ask("talk-3", "total", 7)
    await asks_for(run, "refund")

    words = ["approve", "talk-3", "refund", "--store", engine.url]
    approved = await asyncio.to_thread(CliRunner().invoke, main, words)

    assert approved.stdout == f"approval refund of run talk-3 is approved by {getpass.getuser()}\n"
    await engine.cancel("talk-3")


async def test_a_message_that_a_run_does_not_take_is_one_line(engine: Engine, say: Say) -> None:
    """A message that Outlive refuses exits with 1, and one that cannot be read exits with 2, each with one line."""
    await engine.start(talked, "o-2", id="talk-2")
    for code, args in [
        (1, ("signal", "none", "paid", "1")),
        (2, ("signal", "talk-2", "paid", "{")),
        (1, ("approve", "talk-2", "refund")),
        (2, ("approve", "talk-2", "refund", "--by", "")),
        (2, ("ask", "talk-2", "total", "--timeout", "soon")),
    ]:
        result = await say(*args)
        assert (result.exit_code, len(result.stderr.splitlines())) == (code, 1), (args, result.output)
    await engine.cancel("talk-2")


@outlive.workflow(signals={"paid": TalkedPayment})
async def talked_declared() -> int:
    """Hears a signal of a declared type."""
    return (await outlive.wait_for_signal("paid", TalkedPayment)).cents


@pytest.mark.parametrize("payload", ['"five"', '{"cents": "five"}', "null"])
async def test_declared_signal_of_another_type_is_refused(engine: Engine, say: Say, payload: str) -> None:
    """`outlive signal` ends with 1 and one line about a payload that does not fit, and the run takes the next one."""
    run = await engine.start(talked_declared, id="talk-4")
    refused = await say("signal", "talk-4", "paid", payload)

    assert (1, 1) == (refused.exit_code, len(refused.stderr.splitlines()))
    assert "signal 'paid' of workflow talked_declared" in refused.stderr
    assert 0 == (await say("signal", "talk-4", "paid", '{"cents": 5}')).exit_code
    assert 5 == await run.result()


async def test_workflows_are_listed_with_what_they_take(engine: Engine, say: Say) -> None:
    """Workflows are listed with the arguments that their workers have described."""
    table = (await say("workflows", "list")).stdout
    listed = {it["name"]: it for it in json.loads((await say("workflows", "list", "--json")).stdout)}

    assert [line.split() for line in table.splitlines() if line.startswith("talked ")] == [
        ["talked", "1", "1", "order:", "string"]
    ]
    assert listed["talked"]["arguments"]["properties"]["order"]["type"] == "string"


async def cli_triggered(n: int) -> int:
    """What an event starts; a workflow in one test only."""
    return n


async def test_an_event_starts_what_has_a_trigger_for_it(tmp_path: Path) -> None:
    """Once for each id; the runs are printed."""
    url = f"sqlite:{tmp_path / 'events.db'}"
    with REGISTRY.forgetting():
        outlive.workflow(on_event="cli.created")(cli_triggered)
        async with Engine(url):
            pass  # Its worker declares the triggers of the code.

    def send(*args: str) -> Result:
        return CliRunner().invoke(main, ["events", *args], env={"OUTLIVE_STORE": url})

    first, again, other = await asyncio.to_thread(
        lambda: [send("send", kind, "5", "--id", "e-1") for kind in ("cli.created", "cli.created", "cli.none")]
    )
    assert (first.exit_code, first.stdout.split()[1]) == (0, "cli_triggered"), first.output
    assert "(it was there)" in again.stdout
    assert "fits no trigger" in other.stderr
    refused = await asyncio.to_thread(send, "send", "cli.created", '"x"', "--json")
    assert (refused.exit_code, json.loads(refused.stdout)["refused"][0]["workflow"]) == (1, "cli_triggered")
    assert "cli_triggered@1  cli.created" in (await asyncio.to_thread(send, "triggers")).stdout


def test_command_waits_for_a_silent_store_as_long_as_is_configured(tmp_path: Path) -> None:
    """Another process writes to the file and does not end: the command says what it does not know, and ends."""
    url = f"sqlite:{tmp_path / 'busy.db'}"

    async def start() -> None:
        async with Engine(url, worker=False) as engine:
            await engine.start(talked, "o-1", id="run-1")

    asyncio.run(start())
    env = {"OUTLIVE_STORE": url, "OUTLIVE_STORE_SECONDS": "0.2"}
    with closing(apsw.Connection(str(tmp_path / "busy.db"))) as writer:
        writer.execute("BEGIN IMMEDIATE")
        said = CliRunner().invoke(main, ["signal", "run-1", "paid", '{"cents": 40}'], env=env)

    assert said.exit_code == 1
    assert "it has not answered for 0.2 s; what was asked of it for run-1 was not written" in said.output
