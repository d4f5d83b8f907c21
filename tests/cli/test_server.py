"""Commands with `--server`: the same answers over HTTP as from the store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import outlive
from outlive.cli import main
from outlive.engine import Engine
from outlive.types import WorkerOptions
from tests.cli.serving import served

Both = Callable[..., Any]


@outlive.step(retry=outlive.Retry(attempts=2, first=0.001))
async def cli_served_step(n: int) -> int:
    """Works at its second attempt; never for 13."""
    if outlive.current_step().attempt == 1 or n == 13:
        raise ValueError("unlucky")
    return n


@outlive.workflow
async def cli_served_child(n: int) -> int:
    """One step."""
    return await cli_served_step(n)


class Declined(Exception):
    """Not named in `raises=`: the workflow gets a `StepFailedError`."""


@outlive.step
async def cli_served_charge(n: int) -> None:
    """Is declined."""
    raise Declined(n)


@outlive.workflow
async def cli_served_order(n: int) -> None:
    """One step, which fails."""
    await cli_served_charge(n)


@outlive.workflow
async def cli_served(n: int) -> int:
    """A child, a signal, and an approval."""
    outlive.publish(n=n)
    found = await cli_served_child(n)
    await outlive.wait_for_signal("go", str)
    await outlive.wait_for_approval("ship", title="Ship it?")
    return found


def give(*args: str, **env: str | None) -> Result:
    """A command."""
    return CliRunner().invoke(main, list(args), env={"OUTLIVE_STORE": None, "OUTLIVE_KEY": None, "USER": "ann", **env})


async def test_commands_give_the_same_answers_over_http(tmp_path: Path) -> None:
    """Lists, one run with its timeline, its history, and what it waits for."""
    url = f"sqlite:{tmp_path / 'served.db'}"
    async with (
        Engine(url, worker=WorkerOptions(name="anvil", schedules=False, flows=False)) as engine,
        served(engine) as address,
    ):
        failed = await engine.start(cli_served, 13, id="f-1", tags={"tenant": "a"})
        with pytest.raises(outlive.errors.RunFailedError):
            await failed.result()
        with pytest.raises(outlive.errors.RunFailedError):
            await (await engine.start(cli_served_order, 13, id="s-1")).result()
        run = await engine.start(cli_served, 1, id="w-1")
        async for entry in run.follow():
            if "waits for signal" in entry.words:
                break

        async def both(*args: str) -> Any:
            stored = await asyncio.to_thread(give, *args, OUTLIVE_STORE=url)
            remote = await asyncio.to_thread(give, *args, OUTLIVE_SERVER=address)
            assert (stored.exit_code, stored.stderr) == (remote.exit_code, remote.stderr), remote.output
            assert json.loads(stored.stdout) == json.loads(remote.stdout)
            return json.loads(remote.stdout)

        assert [it["id"] for it in (await both("runs", "list", "--json"))["runs"]] == ["w-1", "s-1", "f-1"]
        assert len((await both("runs", "list", "--status", "failed", "--tag", "tenant=a", "--json"))["runs"]) == 1
        assert await both("runs", "count", "--json") == {
            "waiting": {"count": 1, "at_least": False},
            "failed": {"count": 2, "at_least": False},
        }
        assert (await both("runs", "why", "w-1", "--json"))["why"] == "it waits for signal 'go'"
        shown = await both("runs", "show", "w-1", "--json")
        assert (shown["published"], [it["kind"] for it in shown["timeline"]][-1]) == ({"n": 1}, "wait")
        await both("runs", "show", "f-1", "--json")
        assert (await both("runs", "show", "s-1", "--json"))["run"]["error"]["type"].endswith(".Declined")
        await both("workflows", "list", "--json")
        await both("approvals", "list", "--json")
        tailed = await asyncio.to_thread(give, "runs", "tail", "f-1", "--server", address)
        assert tailed.stdout == (await asyncio.to_thread(give, "runs", "tail", "f-1", "--store", url)).stdout
        assert tailed.exit_code == 1


async def test_a_store_is_looked_after_over_http(tmp_path: Path) -> None:
    """Workers, queues, schedules, runs that do not move, the audit log and keys: the same answers as from the store."""
    url = f"sqlite:{tmp_path / 'kept.db'}"
    async with (
        Engine(url, worker=WorkerOptions(name="anvil", schedules=False, flows=False)) as engine,
        served(engine) as address,
    ):

        async def both(*args: str) -> Any:
            stored = await asyncio.to_thread(give, *args, "--json", OUTLIVE_STORE=url)
            remote = await asyncio.to_thread(give, *args, "--json", OUTLIVE_SERVER=address)
            assert (stored.exit_code, stored.stderr) == (remote.exit_code, remote.stderr), remote.output
            assert _steady(json.loads(stored.stdout)) == _steady(json.loads(remote.stdout))
            return json.loads(remote.stdout)

        async def say(*args: str) -> str:
            result = await asyncio.to_thread(give, *args, OUTLIVE_SERVER=address)
            assert result.exit_code == 0, result.output
            return result.stdout

        await engine.schedules.set("nightly", outlive.every(hours=1, args={"n": 1}), cli_served)
        await engine.queues.set("mail", concurrency=9)
        await engine.queues.pause("mail", reason="rain")
        await engine.start(cli_served, 1, id="held", queue="mail", key="a")
        stuck_run = await engine.start(cli_served, 1, id="held-up")
        await engine.pause("held-up", reason="rain")
        async for entry in stuck_run.follow():
            if entry.type == "RunParked":
                break
        (worker,) = await both("workers", "list")
        assert (worker["name"], worker["status"], "cli_served@1" in worker["definitions"]) == ("anvil", "live", True)
        assert await say("queues", "set", "mail", "--concurrency", "7") == "queue mail: concurrency 7\n"
        # Code of other tests in this process declares queues as well.
        (queue,) = [it for it in await both("queues", "list") if it["name"] == "mail"]
        assert (queue["limits"]["concurrency"], queue["in_line"]["count"]) == (7, 1)
        said = await say("queues", "set", "mail", "--rate", "500/h", "--weight", "a=2")
        assert said == "queue mail: concurrency 7, 500 in 3600 s, weight of a 2\n"
        assert await say("queues", "set", "mail", "--reset") == "queue mail: none\n"
        assert await say("queues", "drain", "mail") == "queue mail is paused, and no run of it is under way\n"
        assert await say("queues", "resume", "mail") == "queue mail is open\n"
        (schedule,) = await both("schedules", "list")
        assert schedule["name"] == "nightly"
        assert await say("schedules", "pause", "nightly", "--reason", "rain") == "schedule nightly is paused\n"
        assert "fires next" in await say("schedules", "resume", "nightly")
        assert "is started" in await say("schedules", "trigger", "nightly")
        assert await say("schedules", "backfill", "nightly", "2026-01-01", "2026-01-01T02:00") == (
            "schedule nightly: 2 ticks to run\n"
        )
        assert await say("schedules", "delete", "nightly") == "schedule nightly is deleted\n"
        (stuck,) = (await both("runs", "list", "--stuck"))["runs"]
        assert (stuck["id"], stuck["kind"]) == ("held-up", "parked")
        assert await say("runs", "resume", "held-up") == "run held-up resumed\n"
        assert (await say("keys", "create", "bob", "--expires", "2d")).startswith("olv_")
        (key,) = await both("keys", "list")
        assert "is revoked" in await say("keys", "revoke", key["id"])
        assert (await both("audit", "list", "--verb", "queue.set"))[0]["target"] == "mail"
        head = (await both("audit", "verify"))["head"]
        assert (await both("audit", "verify", "--since", head))["problems"] == []


def _steady(found: Any) -> Any:
    """Without what a moment changes."""
    if isinstance(found, list):
        return [
            {**each, "expires_in": 0, "expires_at": 0, "waiting": 0, "keys": _steady(each.get("keys"))}
            for each in found
        ]
    return found


async def test_a_person_acts_over_http(tmp_path: Path) -> None:
    """Signals, decides, pauses and cancels; what the server refuses is one line."""
    url = f"sqlite:{tmp_path / 'acted.db'}"
    async with Engine(url, worker=WorkerOptions(schedules=False, flows=False)) as engine, served(engine) as address:

        async def say(*args: str) -> Result:
            return await asyncio.to_thread(give, *args, OUTLIVE_SERVER=address)

        run = await engine.start(cli_served, 2, id="a-1")
        assert (await say("signal", "a-1", "go", '"x"')).stdout == "signal go is sent to run a-1\n"
        async for entry in run.follow():
            if "asked for approval" in entry.words:
                break
        assert (await say("approve", "a-1", "ship", "--by", "ann")).stdout == (
            "approval ship of run a-1 is approved by ann\n"
        )
        assert (await say("runs", "tail", "a-1")).exit_code == 0
        assert await run.result() == 2

        assert (await say("runs", "pause", "--workflow", "cli_served", "--yes")).stdout == (
            "workflow cli_served is paused\n"
        )
        await engine.start(cli_served, 3, id="a-2")
        assert (await say("runs", "cancel", "--id-prefix", "a-", "--yes", "--reason", "rain")).exit_code == 0
        assert (await say("runs", "resume", "--workflow", "cli_served", "--yes")).exit_code == 0
        await engine.start(cli_served, 4, id="a-3")
        assert (await say("runs", "cancel", "a-3")).stdout == "run a-3 asked to stop\n"
        missing = await say("runs", "why", "none")
        assert (missing.exit_code, len(missing.stderr.splitlines())) == (1, 1)
        for verb, done in (("pause", "is paused"), ("resume", "is resumed")):
            assert done in (await say("runs", verb, "--all", "--yes")).stdout
        unknown = await asyncio.to_thread(give, "runs", "list", OUTLIVE_SERVER=address, OUTLIVE_KEY="olv_wrong")
        assert (unknown.exit_code, "a command takes it from OUTLIVE_KEY" in unknown.stderr) == (1, True)
        assert (await say("events", "send", "none.happened", "1", "--id", "e")).exit_code == 0


def test_mistakes_in_the_address_are_one_line() -> None:
    """A server that is not an address, and one beside a store."""
    for args, words in [
        (("runs", "list", "--server", "runs.example.com"), "it is an address like"),
        (("runs", "list", "--server", "https://a", "--store", "sqlite:a.db"), "not both"),
    ]:
        result = give(*args)
        assert (result.exit_code, words in result.stderr) == (2, True), result.output


@pytest.mark.parametrize(
    "words", ["runs why", "runs tail", "flows history", "queues pause", "signal r", "events send", "keys create"]
)
async def test_a_word_that_is_empty_is_the_same_mistake_over_http(words: str, tmp_path: Path) -> None:
    """A variable of a shell that is not set is empty; no path of the server is made of it, and no request is sent."""
    url = f"sqlite:{tmp_path / 'served.db'}"
    async with Engine(url, worker=False) as engine, served(engine) as address:
        stored = await asyncio.to_thread(give, *words.split(), "", OUTLIVE_STORE=url)
        remote = await asyncio.to_thread(give, *words.split(), "", OUTLIVE_SERVER=address)

    assert (stored.exit_code, remote.exit_code) == (2, 2), remote.output
    assert "path" not in remote.stderr
    assert "/api/v1" not in remote.stderr


async def test_a_refusal_of_another_program_asks_for_the_address() -> None:
    """Whatever its status: nothing that was typed is the mistake, only where it was sent."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        result = await asyncio.to_thread(give, "runs", "list", "--server", f"http://127.0.0.1:{port}")

    assert "the server answered 400: <html>; Is this the address of `outlive serve`?" in result.stderr


CLI_FLOW = """\
name: cli-served-flow
input: {{ n: {{ type: integer }} }}
steps:
  double: {{ use: noop, with: {{ n: "${{{{ input.n * {factor} }}}}" }} }}
output: "${{{{ steps.double.n }}}}"
"""


async def test_the_library_of_flows_is_kept_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Published, looked at, run, rolled back and deleted: the same answers as from the store."""
    monkeypatch.chdir(tmp_path)
    for factor in (2, 3):
        Path(f"{factor}.yaml").write_text(CLI_FLOW.format(factor=factor))
    Path("bad.yaml").write_text(CLI_FLOW.format(factor=2).replace("use: noop", "uses: noop"))
    url, name = "sqlite:flows.db", "cli-served-flow"
    async with Engine(url, worker=WorkerOptions(schedules=False)) as engine, served(engine) as address:

        async def say(*args: str, code: int = 0) -> Result:
            result = await asyncio.to_thread(give, "flows", *args, OUTLIVE_SERVER=address)
            assert result.exit_code == code, result.output
            return result

        async def both(*args: str, code: int = 0) -> str:
            stored = await asyncio.to_thread(give, "flows", *args, OUTLIVE_STORE=url)
            remote = await say(*args, code=code)
            assert (stored.stdout, stored.stderr) == (remote.stdout, remote.stderr)
            return remote.stderr if code else remote.stdout

        assert "published as revision 1" in (await say("apply", "2.yaml", "--reason", "first")).stdout
        assert "unchanged, revision 1" in (await say("apply", "2.yaml")).stdout
        assert "bad.yaml:4:13: a step has no field" in (await say("apply", "bad.yaml", code=1)).stderr
        assert "draft 1 of revision 1 is kept" in (await say("draft", "3.yaml")).stdout
        assert "draft" in await both("show", name, "--draft")
        assert "revision 2 is published" in (await say("publish", name)).stdout
        assert "say that you expect 2" in await both("apply", "2.yaml", "--expected", "1", code=1)
        assert "6\n" == (await say("run", name, "--input", '{"n": 2}', "--id", "f-1")).stdout
        assert "does not take this" in await both("run", name, "--input", '{"n": "two"}', code=1)
        assert "revision 3 is published with the document of revision 1" in (await say("rollback", name)).stdout
        assert [it["number"] for it in json.loads(await both("history", name, "--json"))] == [3, 2, 1]
        # What a run was started with, and not what is published now.
        assert "n * 3" in await both("show", name, "--run", "f-1", "--as", "source")
        assert "succeeded" in await both("show", name, "--run", "f-1")
        assert '"result": {' in (await say("step", name, "double", "--input", '{"n": 1}', "--json")).stdout
        assert "it is disabled" in (await say("disable", name, "--by", "ann", "--reason", "closed")).stdout
        assert f"flow {name} is disabled by ann: closed" in (await say("run", name, code=1)).stderr
        assert "it is enabled" in (await say("enable", name)).stdout
        assert name in await both("list")
        assert "is run by this command" in (await say("run", "2.yaml", code=2)).stderr
        assert f"flow {name} is deleted" in (await say("delete", name, "--runs")).stdout
        assert (int(await engine.count()), (await say("list")).stdout) == (0, await both("list"))
        assert f"there is no flow {name}" in (await say("history", name, code=1)).stderr
