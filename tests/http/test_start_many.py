"""Many starts in one request: an answer for each, one mistake starts nothing, and the same through a connection and a
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
from outlive.errors import InvalidArgumentError, NotFoundError, WrongArgumentsError
from outlive.errors.run import StartsRefusedError
from outlive.http import Api
from outlive.testing import TestEngine
from tests.cli.serving import served
from tests.engine.inside import store_of
from tests.engine.support import registry_of
from tests.http import shop
from tests.http.caller import Answer, Caller

PATH = "/api/v1/bulk/start"
ORDER = {"workflow": "api_order", "arguments": {"cents": 5}}
PATIENT: dict[str, Any] = {"workflow": "api_patient"}


async def sent(api: Caller, *starts: dict[str, Any], **options: Any) -> Answer:
    """The answer to a request with these starts."""
    return await api.post(PATH, {"starts": list(starts)}, **options)


async def test_each_start_has_an_answer(api: Caller, engine: TestEngine) -> None:
    """In the order of the starts; a taken id has a problem in its place, and the others are started."""
    await engine.start(shop.api_patient, id="m-0")

    answer = await sent(
        api,
        {**PATIENT, "id": "m-0"},
        {**ORDER, "id": "m-1", "tags": {"a": "b"}},
        {**PATIENT, "id": "m-0b"},
        {**ORDER, "id": "m-2", "on_conflict": "reject"},
    )
    taken = await sent(api, {**ORDER, "id": "m-0"}, {**ORDER, "id": "m-3"})

    assert answer.status == taken.status == 201
    assert answer.data["items"] == [{"id": run_id, "problem": None} for run_id in ("m-0", "m-1", "m-0b", "m-2")]
    (refused, started) = taken.data["items"]
    assert (refused["id"], refused["problem"]["status"], refused["problem"]["code"]) == ("m-0", 409, "run_exists")
    assert started == {"id": "m-3", "problem": None}
    assert (await engine.get("m-1").info()).tags == {"a": "b"}
    assert await engine.get("m-3").result() == {"receipt": "5 charged", "note": ""}


@pytest.mark.parametrize(
    ("start", "status", "text"),
    [
        ({"workflow": "nothing"}, 404, "starts[1]: no worker has described a workflow nothing"),
        ({**ORDER, "arguments": {"euros": 5}}, 422, "starts[1].arguments"),
        ({**ORDER, "timeout": -1}, 400, "$.starts[1].timeout"),
        ({**ORDER, "key": "x"}, 422, "starts[1].key"),
        ({**ORDER, "id": "m-0"}, 422, "starts[1].id"),
        ({**ORDER, "when": 7}, 400, "$.starts[1]"),
    ],
)
async def test_one_mistake_starts_nothing(
    api: Caller, engine: TestEngine, start: dict[str, Any], status: int, text: str
) -> None:
    """The problem names the place of the start that cannot work."""
    answer = await sent(api, {**ORDER, "id": "m-0"}, start)

    assert (answer.status, text in answer.data["detail"]) == (status, True), answer.data["detail"]
    assert await engine.count() == 0


async def test_the_number_of_starts_is_bounded(api: Caller, engine: TestEngine) -> None:
    """None and more than a thousand are refused while the request is read."""
    assert (await sent(api)).status == 400
    assert (await sent(api, *[PATIENT] * 1001)).status == 400
    assert await engine.count() == 0


@pytest.mark.parametrize("on_conflict", ["attach", "attach_open", "reject", "replace"])
async def test_a_request_that_is_sent_again_starts_nothing_twice(
    api: Caller, engine: TestEngine, on_conflict: str
) -> None:
    """By its `Idempotency-Key`, with ids that the starts give and with ids that are made of the key."""
    starts = [{**PATIENT, "id": "m-0", "on_conflict": on_conflict}, {**PATIENT, "on_conflict": on_conflict}, PATIENT]
    first = await sent(api, *starts, headers={"idempotency-key": "once"})
    await engine.settle()
    again = await sent(api, *starts, headers={"idempotency-key": "once"})

    assert (first.status, first.body) == (201, again.body)
    assert await engine.count() == 3


async def test_a_key_for_some_workflows_starts_no_others(engine: TestEngine) -> None:
    """A workflow that the key may not know of is not there, wherever in the list it stands, and a viewer starts
    nothing. [S3]"""
    key = await engine.keys.create("eve", scope="operator", workflows=["api_order"])
    bound = Caller(Api(engine, auth="keys"), key=key.secret)
    viewer = Caller(Api(engine, auth="keys"), key=(await engine.keys.create("ann", scope="viewer")).secret)

    refused = await sent(bound, ORDER, PATIENT)

    assert (refused.status, refused.code) == (404, "unknown_workflow")
    assert "starts[1]" in refused.data["detail"]
    assert (await sent(viewer, ORDER)).status == 403
    assert await engine.count() == 0
    assert (await sent(bound, ORDER, ORDER)).status == 201
    assert await engine.count() == 2


async def test_a_connection_starts_many(engine: TestEngine) -> None:
    """By the code of workflows and by their names; mistakes and taken ids are the errors of an engine."""
    await Describer(store_of(engine), registry_of(shop.api_order, shop.api_patient)).describe()
    async with served(engine) as url, outlive.connect(url) as remote:
        runs = await remote.start_many(
            [
                (shop.api_order, 1),
                shop.api_order.bind(2, note="x"),
                {"start": ("api_order", {"cents": 3}), "id": "m-3"},
            ],
            tags={"all": "1"},
        )
        assert [(await run.result())["receipt"] for run in runs] == ["1 charged", "2 charged", "3 charged"]
        assert [(await run.info()).tags for run in runs] == [{"all": "1"}] * 3

        with pytest.raises(WrongArgumentsError, match=r"starts\[1\]"):
            await remote.start_many([(shop.api_order, 1), (shop.api_patient, 2)])
        with pytest.raises(NotFoundError, match=r"starts\[1\]"):
            await remote.start_many([(shop.api_order, 1), ("nothing", {})])
        with pytest.raises(InvalidArgumentError, match=r"only engine\.start takes it") as caught:
            await remote.start_many([{"start": (shop.api_order, 1), "debounce": 5}])  # type: ignore[list-item]
        with pytest.raises(InvalidArgumentError, match=r"^engine\.start_many: starts\[1\]\.timeout=-1 cannot"):
            await remote.start_many([(shop.api_order, 1), {"start": (shop.api_order, 2), "timeout": -1}])
        assert caught.value.name == "starts[0].debounce"
        with pytest.raises(StartsRefusedError) as refused:
            await remote.start_many([{"start": shop.api_patient.bind(), "id": "m-3"}, (shop.api_order, 4)])
        assert refused.value.ids[0] == "m-3"
        assert {at: it.code for at, it in refused.value.refused.items()} == {0: "run_exists"}
        assert await remote.start_many([]) == []


async def test_a_command_starts_a_run_for_each_line(engine: TestEngine, tmp_path: Path) -> None:
    """It prints their ids; a taken id is a line on standard error, and a line that cannot be read starts nothing."""
    file = tmp_path / "starts.jsonl"
    async with served(engine) as url:

        async def typed(*lines: object, more: tuple[str, ...] = ()) -> Result:
            file.write_text("".join(f"{it if isinstance(it, str) else json.dumps(it)}\n" for it in lines))
            args = ["runs", "start-many", str(file), "--server", url, *more]
            return await asyncio.to_thread(CliRunner().invoke, main, args)

        started = await typed({**ORDER, "id": "m-1"}, "", {**PATIENT, "id": "m-2"})
        assert (started.exit_code, started.stdout.split()) == (0, ["m-1", "m-2"])
        refused = await typed({**PATIENT, "id": "m-1"}, {**ORDER, "id": "m-3"})
        assert (refused.exit_code, refused.stdout.split()) == (1, ["m-3"])
        assert "line 1: run 'm-1' exists already" in refused.stderr
        wrong = await typed(ORDER, {"workflow": 7})
        assert wrong.exit_code == 2
        assert "line 2: Expected `str`, got `int` - at `$.workflow`" in wrong.stderr
        shown = await typed({**ORDER, "id": "m-3"}, more=("--json",))
        assert json.loads(shown.stdout) == [{"line": 1, "id": "m-3", "refused": None}]
    assert await engine.count() == 3
