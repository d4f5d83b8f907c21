"""Typed signals: checked at the sender where they are declared, else at the receiver, and never lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import outlive
from outlive._kernel.client.definitions import Describer
from outlive._kernel.define.registry import REGISTRY, Registry
from outlive.errors.run import SignalTypeError
from tests.engine.inside import store_of
from tests.engine.support import Place, in_time, until, waits_for_another

pytestmark = pytest.mark.any_store


@dataclass(frozen=True)
class Payment:
    cents: int
    by: str = "card"


@outlive.workflow
async def listening_typed() -> Payment:
    return await outlive.wait_for_signal("paid", Payment)


@outlive.workflow(signals={"paid": Payment, "count": int})
async def listening_declared() -> Payment:
    return await outlive.wait_for_signal("paid", Payment)


async def test_a_typed_signal_comes_as_its_type(engine: outlive.Engine) -> None:
    """The receiver's type decides, whether the sender used it or plain values."""
    first, second = await engine.start(listening_typed), await engine.start(listening_typed)
    await first.signal("paid", Payment(5, "cash"))
    await second.signal("paid", {"cents": 7})

    assert Payment(5, "cash") == await in_time(first.result())
    assert Payment(7) == await in_time(second.result())


@pytest.mark.parametrize("payload", ["five", {"cents": "five"}, None, Payment("five")])  # type: ignore[arg-type]
async def test_a_declared_type_is_checked_at_the_sender(engine: outlive.Engine, payload: Any) -> None:
    """A workflow that declares its signals never gets one of another type; nothing is stored. [TS-R8]"""
    run = await engine.start(listening_declared, id="run-1")

    with pytest.raises(SignalTypeError, match="signal 'paid' of workflow listening_declared"):
        await run.signal("paid", payload)
    with pytest.raises(SignalTypeError):
        await engine.signal("run-2", "paid", payload, start=(listening_declared,))

    await run.signal("paid", Payment(1))
    assert Payment(1) == await in_time(run.result())
    assert ["run-1"] == [run.id for run in await engine.list(workflow="listening_declared")]


async def test_an_undeclared_wrong_type_is_set_aside_and_the_receiver_waits_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A signal that cannot be read is in the log, in `why` and in a list of its own; a right one that is sent then is
    taken."""
    async with Place(None).engine() as engine:
        run = await engine.start(listening_typed, id="run-1")
        await run.signal("paid", {"cents": "five"})
        await waits_for_another(run, "paid")

        reason = "it cannot be read as Payment: Expected `int`, got `str` - at `$.cents`"
        assert f"it waits for signal 'paid' (1 message was set aside: {reason})" == await run.why()
        (found,) = await engine.dead_letters.list("run-1")
        assert ("run-1", "signal", "paid", reason) == (found.run_id, found.kind, found.name, found.reason)
        assert {"cents": "five"} == found.value

        async def is_logged() -> bool:
            return any("was set aside" in record.message for record in caplog.records)

        await until(is_logged)  # The log says it a moment after it is durable.
        (record,) = [record for record in caplog.records if "was set aside" in record.message]
        assert ("WARNING", "run-1", "listening_typed") == (record.levelname, record.run_id, record.workflow)  # type: ignore[attr-defined]

        await run.signal("paid", Payment(5))
        assert Payment(5) == await in_time(run.result())


async def test_a_message_that_was_set_aside_can_be_sent_again_to_code_that_reads_it() -> None:
    """For example after a deploy."""
    place = Place(None)
    async with place.engine() as first:
        run = await first.start(listening_typed, id="run-1")
        await run.signal("paid", {"cents": "five"})
        await waits_for_another(run, "paid")
    fixed = Registry()
    spec = listening_typed.spec
    fixed.add_workflow(type(spec)(name=spec.name, version=1, fn=listen_to_text, signature=spec.signature))
    async with place.engine(registry=fixed) as second:
        (found,) = await second.dead_letters.list("run-1")
        await second.signal("run-1", found.name, found.value)
        assert Payment(5) == await in_time(second.get("run-1").result())


async def listen_to_text() -> Payment:
    said = await outlive.wait_for_signal("paid", dict)
    return Payment({"five": 5}[said["cents"]])


@outlive.workflow
async def listening_for(kind: str) -> Any:
    """Waits for an object, or a list, of anything."""
    return await outlive.wait_for_signal("thing", {"dict": dict, "list": list, "objects": dict[str, Any]}[kind])


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [("dict", "text", {"a": 1}), ("list", {"a": 1}, [1, "x"]), ("objects", ["a"], {"a": [None]})],
)
async def test_an_untyped_container_is_that_container(
    engine: outlive.Engine, kind: str, wrong: Any, right: Any
) -> None:
    """A text is not a dict of anything: it is set aside, as what is of another type always is."""
    run = await engine.start(listening_for, kind)
    await run.signal("thing", wrong)
    await waits_for_another(run, "thing")
    await run.signal("thing", right)

    assert await in_time(run.result()) == right
    assert [it.value for it in await engine.dead_letters.list(run.id)] == [wrong]


@outlive.workflow(signals={"paid": Payment, "any": dict})
async def listening_elsewhere() -> Payment:
    """Its code is where its worker is."""
    return await outlive.wait_for_signal("paid", Payment)


async def test_a_declared_type_is_checked_for_senders_that_have_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line, and servers: a worker has described it. What fits is taken in its public form."""
    place = Place(None)
    async with place.engine() as worker:
        run = await worker.start(listening_elsewhere, id="run-1")
        await run.signal("any", {})
        with pytest.raises(SignalTypeError):
            await run.signal("any", [])
        await Describer(store_of(worker), REGISTRY).describe()
        monkeypatch.setattr("outlive._kernel.client.inbox.SIGNALS", {})
        async with place.engine(worker=False) as sender:
            for wrong in ("five", {"cents": "five"}, None):
                with pytest.raises(SignalTypeError, match="signal 'paid' of workflow listening_elsewhere"):
                    await sender.signal("run-1", "paid", wrong)
            with pytest.raises(SignalTypeError):
                await sender.signal("run-1", "any", "text")
            await sender.signal("run-1", "paid", {"cents": 7})
            await sender.signal("run-1", "other", "text")

        assert await in_time(run.result()) == Payment(7)


async def test_a_declared_signal_can_be_sent_as_plain_values(engine: outlive.Engine) -> None:
    """A declared signal that is sent as plain values reaches the workflow as its declared type."""
    run = await engine.start(listening_declared)
    await run.signal("paid", {"cents": 7, "by": "cash"})

    assert Payment(7, "cash") == await in_time(run.result())
