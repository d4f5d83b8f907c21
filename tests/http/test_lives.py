"""An id that lives on, over HTTP, through a connection and on the command line."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from click.testing import CliRunner

import outlive
from outlive._kernel.client.definitions import Describer
from outlive.cli import main
from outlive.errors import RunExistsError
from outlive.http import Api
from outlive.http.limits import ApiLimits
from outlive.testing import TestEngine
from tests.cli.serving import served
from tests.engine.inside import store_of
from tests.engine.support import registry_of
from tests.http.caller import Caller

LIVES_ON = {"workflow": "wire_told", "on_conflict": "attach_open"}


@outlive.workflow
async def wire_told() -> Any:
    async for ask in outlive.asks("what"):
        ask.reply(ask.body)
        return ask.body
    raise AssertionError


@outlive.workflow
async def wire_heard() -> Any:
    return await outlive.wait_for_signal("go")


@outlive.workflow
async def wire_stubborn() -> None:
    """Does not stop before it has heard a signal."""
    try:
        await outlive.wait_for_signal("go")
    finally:
        await outlive.wait_for_signal("stop")


@pytest.fixture(autouse=True)
async def described(engine: TestEngine) -> None:
    """The store knows the workflows, as a worker would let it know."""
    await Describer(store_of(engine), registry_of(wire_told, wire_heard, wire_stubborn)).describe()


async def test_messages_begin_runs_after_the_end(api: Caller, engine: TestEngine) -> None:
    """A signal and an ask say so in `start`; without it they are refused."""
    start = {"workflow": "wire_heard", "on_conflict": "attach_open"}
    for number in range(2):
        sent = await api.post("/api/v1/runs/w-1/signals/go", {"payload": number, "start": start, "key": f"k{number}"})
        assert sent.status == 202
        assert await engine.get("w-1").result() == number
    again = await api.post("/api/v1/runs/w-1/signals/go", {"payload": 0, "start": start, "key": "k0"})
    refused = await api.post("/api/v1/runs/w-1/signals/go", {"start": {"workflow": "wire_heard"}})
    assert (again.status, refused.status, refused.code) == (202, 409, "run_finished")
    for number in range(2):
        asked = await api.post("/api/v1/runs/w-2/asks/what", {"body": number, "start": LIVES_ON, "wait": 5})
        assert (asked.status, asked.data["answer"]) == (200, number)
        await engine.get("w-2").result()
    assert {run.id for run in await engine.list()} == {"w-1", "w-1~old1", "w-2", "w-2~old1"}


async def test_a_start_that_cancels_is_given_up_in_time(engine: TestEngine) -> None:
    """The run is asked to stop, and the answer says to send the start again; then the new run begins."""
    await engine.start(wire_stubborn, id="w-1")
    await engine.settle()
    api = Caller(Api(engine, limits=ApiLimits(wait_seconds_max=0.05)))
    body = {"workflow": "wire_heard", "id": "w-1", "on_conflict": "cancel_open"}

    for path, sent in (("/api/v1/runs", body), ("/api/v1/bulk/start", {"starts": [body]})):
        refused = await api.post(path, sent)
        assert (refused.status, refused.code) == (409, "run_exists"), refused.body
        assert "send the start again" in refused.data["detail"]
    await engine.signal("w-1", "stop")
    await engine.settle()
    assert (await api.post("/api/v1/runs", body)).status == 201
    assert (await engine.get("w-1").info()).workflow == "wire_heard"
    assert await engine.get("w-1~old1").status() == "cancelled"


async def test_a_connection_and_a_command_live_on(engine: TestEngine) -> None:
    """`on_conflict` is the same through a server, and the command has a flag."""
    async with served(engine) as url, outlive.connect(url) as remote:
        for number in range(2):
            await remote.signal("w-1", "go", number, start=(wire_heard,), on_conflict="attach_open")
            assert await remote.get("w-1").result() == number
            answer = await remote.ask("w-2", "what", number, start=(wire_told,), on_conflict="attach_open")
            assert answer == number
            await remote.get("w-2").result()
        await remote.signal_many([{"signal": ("w-1", "go", 2), "start": (wire_heard,), "on_conflict": "attach_open"}])
        assert await remote.get("w-1").result() == 2
        args = ["signal", "w-1", "go", "3", "--start", "wire_heard", "--lives-on", "--server", url]
        done = await asyncio.to_thread(CliRunner().invoke, main, args)
        assert done.exit_code == 0, done.output
        assert await engine.get("w-1").result() == 3
        await remote.start(wire_heard, id="w-3", on_conflict="reject_open")
        with pytest.raises(RunExistsError):
            await remote.start(wire_heard, id="w-3", on_conflict="reject_open")
    assert await engine.count(workflow="wire_heard") == 5
