"""Many signals in one request: an answer for each, one mistake sends nothing, and the same through a connection and a
command."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import outlive
from outlive._kernel.client.definitions import Describer
from outlive.cli import main
from outlive.errors import ArgumentTypeError, NotFoundError
from outlive.errors.run import SignalsRefusedError
from outlive.http import Api
from outlive.testing import TestEngine
from tests.cli.serving import served
from tests.engine.inside import store_of
from tests.engine.support import registry_of
from tests.http import shop
from tests.http.caller import Answer, Caller

PATH = "/api/v1/bulk/signal"
START = {"workflow": "many_told"}


@outlive.workflow
async def many_told() -> Any:
    return await outlive.wait_for_signal("go")


@pytest.fixture(autouse=True)
async def described(engine: TestEngine) -> None:
    """The store knows the workflow, as a worker would let it know."""
    await Describer(store_of(engine), registry_of(many_told, shop.api_order, shop.api_patient)).describe()


async def sent(api: Caller, *signals: dict[str, Any], **options: Any) -> Answer:
    """The answer to a request with these signals."""
    return await api.post(PATH, {"signals": list(signals)}, **options)


async def test_each_signal_has_an_answer(api: Caller, engine: TestEngine) -> None:
    """In the order of the signals; a run that is not there has a problem in its place, and the others are sent."""
    run = await engine.start(many_told)

    answer = await sent(
        api,
        {"run_id": run.id, "name": "go", "payload": {"a": 1}},
        {"run_id": "nothing", "name": "go"},
        {"run_id": "t-1", "name": "go", "payload": 2, "start": START},
    )

    assert answer.status == 202
    first, refused, last = answer.data["items"]
    assert (first, last) == (
        {"run_id": run.id, "name": "go", "problem": None},
        {"run_id": "t-1", "name": "go", "problem": None},
    )
    assert (refused["problem"]["status"], refused["problem"]["code"]) == (404, "run_not_found")
    assert [await run.result(), await engine.get("t-1").result()] == [{"a": 1}, 2]


@pytest.mark.parametrize(
    ("signal", "status", "text"),
    [
        ({"run_id": "t-1", "name": "go", "start": {"workflow": "nothing"}}, 404, "signals[1]: no worker has described"),
        ({"run_id": "t-1", "name": "go", "start": {**START, "arguments": {"a": 5}}}, 422, "signals[1]"),
        ({"run_id": "t-1"}, 400, "$.signals[1]"),
        ({"run_id": "t-1", "name": "go", "when": 7}, 400, "$.signals[1]"),
    ],
)
async def test_one_mistake_sends_nothing(
    api: Caller, engine: TestEngine, signal: dict[str, Any], status: int, text: str
) -> None:
    """The problem names the place of the signal that cannot work."""
    answer = await sent(api, {"run_id": "t-0", "name": "go", "start": START}, signal)

    assert (answer.status, text in answer.data["detail"]) == (status, True), answer.data["detail"]
    assert await engine.count() == 0


async def test_the_number_of_signals_is_bounded(api: Caller, engine: TestEngine) -> None:
    """None and more than a thousand are refused while the request is read."""
    assert (await sent(api)).status == 400
    assert (await sent(api, *[{"run_id": "t-0", "name": "go"}] * 1001)).status == 400


async def test_a_request_that_is_sent_again_sends_nothing_twice(api: Caller, engine: TestEngine) -> None:
    """By its `Idempotency-Key`: two equal signals of one request are two."""
    run = await engine.start(shop.api_patient)
    signal = {"run_id": run.id, "name": "other"}
    for _ in range(2):
        assert (await sent(api, signal, signal, headers={"idempotency-key": "once"})).status == 202
    await engine.settle()

    assert [it.type for it in await run.history()].count("SignalReceived") == 2


async def test_a_key_for_some_workflows_reaches_no_others(engine: TestEngine) -> None:
    """Neither a run of another workflow nor what it declares shows, and none is created. [S3 S33]"""
    await engine.start(shop.api_patient, id="theirs")
    before = (await engine.get("theirs").info()).updated_at
    key = await engine.keys.create("eve", scope="operator", workflows=["many_told"])
    bound = Caller(Api(engine, auth="keys"), key=key.secret)
    viewer = Caller(Api(engine, auth="keys"), key=(await engine.keys.create("ann", scope="viewer")).secret)

    refused = await sent(bound, {"run_id": "new", "name": "go", "start": {"workflow": "api_patient"}})
    answer = await sent(
        bound,
        {"run_id": "theirs", "name": "go"},
        {"run_id": "theirs", "name": "go", "start": START},
        {"run_id": "new", "name": "go", "start": START},
    )

    assert (refused.status, refused.code) == (404, "unknown_workflow")
    assert (await sent(viewer, {"run_id": "theirs", "name": "go"})).status == 403
    assert [it["problem"] and it["problem"]["code"] for it in answer.data["items"]] == ["run_not_found"] * 2 + [None]
    assert (await engine.get("theirs").info()).updated_at == before
    assert {"theirs", "new"} == {run.id for run in await engine.list()}


async def test_a_connection_sends_many(engine: TestEngine) -> None:
    """Mistakes and refusals are the errors of an engine."""
    async with served(engine) as url, outlive.connect(url) as remote:
        run = await remote.start(many_told)
        await remote.signal_many(
            [(run.id, "go", 1), {"signal": ("t-1", "go", 2), "start": (many_told,), "headers": {"a": "b"}}]
        )
        assert [await run.result(), await remote.get("t-1").result()] == [1, 2]

        with pytest.raises(NotFoundError, match=r"signals\[1\]"):
            await remote.signal_many([("t-1", "go"), {"signal": ("t-2", "go"), "start": ("nothing",)}])
        with pytest.raises(ArgumentTypeError, match=r"signals\[0\]\.signal"):
            await remote.signal_many([("t-1",)])  # type: ignore[list-item]
        with pytest.raises(SignalsRefusedError, match="1 of 2 signals") as refused:
            await remote.signal_many([("nothing", "go"), {"signal": ("t-3", "go"), "start": (many_told,)}])
        assert {at: it.code for at, it in refused.value.refused.items()} == {0: "run_not_found"}
        await remote.signal_many([])


async def test_a_command_sends_a_signal_for_each_line(engine: TestEngine, tmp_path: Path) -> None:
    """A refused signal is a line on standard error, and a line that cannot be read sends nothing."""
    file = tmp_path / "signals.jsonl"
    async with served(engine) as url:

        async def typed(*lines: object, more: tuple[str, ...] = ()) -> Result:
            file.write_text("".join(f"{it if isinstance(it, str) else json.dumps(it)}\n" for it in lines))
            args = ["runs", "signal-many", str(file), "--server", url, *more]
            return await asyncio.to_thread(CliRunner().invoke, main, args)

        one = {"run_id": "t-1", "name": "go", "payload": 1, "key": "k", "start": START}
        done = await typed(one, "", {**one, "run_id": "t-2"})
        assert (done.exit_code, done.stdout) == (0, "2 signals are sent\n"), done.output
        refused = await typed({"run_id": "nothing", "name": "go"}, {**one, "run_id": "t-3"})
        assert (refused.exit_code, refused.stdout) == (1, "1 signals are sent\n")
        assert "line 1: no run has id 'nothing'" in refused.stderr
        wrong = await typed(one, {"run_id": 7, "name": "go"})
        assert wrong.exit_code == 2
        assert "line 2: Expected `str`, got `int` - at `$.run_id`" in wrong.stderr
        shown = await typed(one, more=("--json",))
        expected = {"line": 1, "id": "t-1", "signal": "go", "key": "k", "refused": None}
        assert json.loads(shown.stdout) == [expected]
    assert [await engine.get(f"t-{number}").result() for number in (1, 2, 3)] == [1, 1, 1]
