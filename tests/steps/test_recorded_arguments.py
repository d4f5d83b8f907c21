"""`Engine(record_arguments=True)`: the journal has the arguments of steps, for people."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import msgspec
import pytest

import outlive
from outlive import Retry
from outlive._features.runs.commands.show import event_line
from outlive._kernel.journal import event as journal
from outlive._kernel.journal.recorded import READ_BYTES_MAX, RECORDED_BYTES_MAX, recorded
from outlive._kernel.journal.redaction import Redaction
from outlive.codecs import Encryption
from tests.engine.inside import journal_of, store_of
from tests.engine.support import Place, hold, in_time, stage, waits
from tests.steps.test_under_way import cells_of, reported

pytestmark = pytest.mark.any_store
NOTHING_HIDDEN = Redaction()


@outlive.step(retry=Retry(2, first=0, jitter=0))
async def ask_recorded(messages: list[dict[str, str]], *, api_key: str, temperature: float = 0.5) -> str:
    stage.call(len(messages))
    if outlive.current_step().attempt == 1 and len(messages) == 1:
        raise ConnectionError("no answer")
    return f"answer to {messages[-1]['content'][:20]}"


@outlive.workflow
async def converse_recorded(turns: int, size: int = 10) -> int:
    messages: list[dict[str, str]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{turn} {'x' * size}"})
        messages.append({"role": "model", "content": await ask_recorded(messages, api_key="hunter2")})
    return len(messages)


@outlive.workflow
async def converse_recorded_twice() -> int:
    first = await converse_recorded(2)
    await outlive.wait_for_signal("more")
    await ask_recorded([{"role": "user", "content": "more"}] * 2, api_key="hunter2")
    return first


class Unseen:
    """A value of a framework that has no form for people."""


@dataclass
class Message:
    """A message of a framework."""

    text: str
    parts: list[Any]
    note: str | None = None
    key: str = field(default="hunter2", repr=False)


@outlive.workflow
async def call_closure(turns: int = 1, fails: int = 0) -> int:
    """Calls a function that has its arguments in a closure, and shows them."""
    messages: list[Message] = []

    async def ask() -> int:
        stage.call("ask")
        if fails:
            raise ConnectionError("no answer")
        return len(messages)

    def show() -> dict[str, Any]:
        stage.call("show")
        if stage.values.get("raises"):
            raise RuntimeError("the message was changed on another thread")
        return {"messages": messages, "api_key": "hunter2"}

    for _ in range(turns):
        messages.append(Message("hello", ["x" * 100, b"1234", Unseen()]))
        with suppress(ConnectionError):
            await outlive.run_step(ask, name="ask", raises=(ConnectionError,), shown=show)
    await outlive.wait_for_signal("more")
    return len(messages)


@outlive.workflow
async def hold_closure() -> None:
    """Shows a long conversation while it is under way."""
    await outlive.run_step(
        lambda: hold.fn("closure"), name="hold", shown=lambda: {"card": "47-11", "turns": [{"text": "x" * 200}] * 1_000}
    )


async def arguments_in(run: Any) -> list[Any]:
    """The arguments that its journal has, in order."""
    found = [event.data.get("arguments") for event in await run.history()]
    return [arguments for arguments in found if arguments is not None]


@pytest.mark.every_store
async def test_the_arguments_of_each_attempt_are_in_the_history(place: Place) -> None:
    """By the names of the parameters, and without what is redacted, also in the store."""
    async with place.engine(record_arguments=True, redact=["api_key"]) as engine:
        run = await engine.start(converse_recorded, 2)
        await in_time(run.result())
        first, second, third = await arguments_in(run)
        assert first == second == {"messages": [{"role": "user", "content": "0 xxxxxxxxxx"}], "api_key": "[redacted]"}
        assert [each["content"][:3] for each in third["messages"]] == ["0 x", "ans", "1 x"]
        stored: list[Any] = [event for event in await journal_of(run) if _has(event)]
        assert all(b"hunter2" not in bytes(event.arguments.v) for event in stored)
        lines = [event_line(event, run.id) for event in await run.history()]
        assert "step ask_recorded succeeded at attempt 2" in lines[-3]
        assert '(messages=[{"role":"user"' in lines[-3]


def _has(event: Any) -> bool:
    return getattr(event, "arguments", None) is not None


async def test_arguments_are_not_recorded_by_default(place: Place) -> None:
    """An engine without `record_arguments` records no arguments."""
    async with place.engine() as engine:
        run = await engine.start(converse_recorded, 1, id="c-1")
        await in_time(run.result())
        assert await arguments_in(run) == []


async def test_a_long_conversation_costs_a_bounded_number_of_bytes(place: Place) -> None:
    """For each turn, however long it has become; the last message is there."""
    async with place.engine(record_arguments=True) as engine:
        run = await engine.start(converse_recorded, 40, 2_000)
        await in_time(run.result())
        found = await arguments_in(run)
        assert max(len(msgspec.json.encode(each)) for each in found) <= RECORDED_BYTES_MAX
        assert found[-1]["messages"][-1]["content"].startswith("39 xx")
        assert found[-1]["messages"][-1]["content"].endswith("[2,003 characters]")
        assert found[-1]["messages"][0]["content"].startswith("0 xx")


async def test_recorded_arguments_are_packed_by_the_codecs(place: Place) -> None:
    """Recorded arguments are encrypted in the journal, and a fork records them as well."""
    codecs = [Encryption({"k1": bytes(32)}, "k1", required=True)]
    async with place.engine(record_arguments=True, codecs=codecs) as engine:
        run = await engine.start(converse_recorded, 2, id="c-1")
        await in_time(run.result())
        (event, *_) = [each for each in await journal_of(run) if _has(each)]
        assert isinstance(event, journal.AttemptFailed)
        assert event.arguments is not None
        assert event.arguments.via == ("aes256gcm",)
        assert len(await arguments_in(run)) == 3
        fork = await engine.fork("c-1", at="ask_recorded#2", id="c-2")
        await in_time(fork.result())
        assert (await arguments_in(fork))[-1] == (await arguments_in(run))[-1]


async def test_a_replay_does_not_read_them(place: Place) -> None:
    """A worker that records nothing goes on with the journal of one that does, and the other way round."""
    async with place.engine(record_arguments=True) as engine:
        run = await engine.start(converse_recorded_twice, id="c-1")
        await waits(run)
    async with place.engine() as engine:
        await engine.signal("c-1", "more")
        assert await in_time(engine.get("c-1").result()) == 4
        assert len(await arguments_in(engine.get("c-1"))) == 3


async def test_a_closure_shows_its_arguments(place: Place) -> None:
    """They are recorded with a success and with a failure: the fields that say something, without what is redacted."""
    message = {"text": "hello", "parts": ["x" * 100, "[4 bytes]", "[Unseen]"]}
    async with place.engine(record_arguments=True, redact=["api_key"]) as engine:
        for fails in (0, 1):
            run = await engine.start(call_closure, 2, fails)
            await waits(run)
            shown = await arguments_in(run)
            assert [{"messages": [message] * many, "api_key": "[redacted]"} for many in (1, 2)] == shown


async def test_no_replay_asks_for_what_a_closure_shows(place: Place) -> None:
    """No code asks for it where nothing is recorded or looked at, and a replay does not either."""
    async with place.engine(record_arguments=True) as engine:
        await waits(await engine.start(call_closure, id="c-1"))
    assert 1 == stage.count("show")
    async with place.engine(record_arguments=True) as engine:
        await engine.signal("c-1", "more")
        await in_time(engine.get("c-1").result())
        assert ["ask", "show"] == stage.calls
    async with place.engine() as engine:
        await waits(await engine.start(call_closure, id="c-2"))
    assert 1 == stage.count("show")


async def test_what_a_closure_shows_is_not_part_of_its_identity(place: Place) -> None:
    """The digest in the journal is that of a call without arguments."""
    async with place.engine(record_arguments=True) as engine:
        run = await engine.start(call_closure, id="c-1")
        await waits(run)
        (event,) = [each for each in await journal_of(run) if isinstance(each, journal.StepSucceeded)]
        assert crc32(b"[]") == event.digest


async def test_a_closure_that_cannot_show_its_arguments_succeeds(place: Place) -> None:
    """An exception in the function that shows them leaves them out, and changes nothing else."""
    stage.values["raises"] = True
    async with place.engine(record_arguments=True) as engine:
        run = await engine.start(call_closure)
        await waits(run)
        assert [] == await arguments_in(run)
        assert ["ask", "show"] == stage.calls


@pytest.mark.every_store
async def test_a_closure_under_way_shows_its_arguments_to_other_processes(place: Place) -> None:
    """A long conversation is cut for the report of the worker, and nothing redacted is in it."""
    async with place.engine(redact=["card"]) as engine, place.engine(worker=False, redact=["card"]) as other:
        run = await engine.start(hold_closure)
        await stage.gate("closure").reached()
        (step,) = await run.steps(arguments=True)
        assert len(msgspec.json.encode(step.arguments)) <= RECORDED_BYTES_MAX
        await reported(engine, place)
        (seen,) = await other.get(run.id).steps(arguments=True)
        assert "[redacted]" == seen.arguments["card"] == step.arguments["card"]
        assert "[997 more]" in seen.arguments["turns"]
        assert 'hold(card="[redacted]", turns=' in await other.get(run.id).why()
        (cell,) = await cells_of(store_of(other))
        assert b"47-11" not in (await store_of(other).read_cell(cell) or b"47-11")
        stage.gate("closure").open()


@pytest.mark.parametrize(
    "value",
    [
        {"text": "x" * 100_000},
        {"rows": list(range(50_000))},
        {"deep": [[[[[[[[[[["x" * 5_000]]]]]]]]]]]},
        {f"n{index}": "y" * 100 for index in range(1_000)},
        {"text": "x" * (READ_BYTES_MAX + 1)},
        {"\u00e4" * 3_000: 1},
    ],
)
def test_recorded_arguments_are_small_json(value: Any) -> None:
    """Recorded arguments are a JSON object of bounded size, whatever shape the arguments have."""
    found = recorded(msgspec.json.encode(value), NOTHING_HIDDEN)

    assert len(found) <= RECORDED_BYTES_MAX
    assert isinstance(msgspec.json.decode(found), dict)
