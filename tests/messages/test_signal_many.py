"""Sending many signals at once: one commit, an answer for each, and nothing at all if one of them cannot work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import outlive
from outlive._kernel.client import signal_many
from outlive._kernel.client.definitions import Describer
from outlive._kernel.define.middleware import Next
from outlive._kernel.store.change import Change, Message
from outlive.errors import ArgumentTypeError, ConflictError, InvalidArgumentError, OutliveError, WrongArgumentsError
from outlive.errors.program import UnknownWorkflowError
from outlive.errors.run import QuotaExceededError, SignalsRefusedError, SignalTypeError
from outlive.testing import TestEngine
from tests.engine.inside import store_of
from tests.engine.support import Place, in_time, registry_of, stage

pytestmark = pytest.mark.any_store


@dataclass(frozen=True)
class Paid:
    cents: int


@outlive.workflow
async def many_heard(count: int) -> list[Any]:
    return [await outlive.wait_for_signal("said") for _ in range(count)]


@outlive.workflow(signals={"paid": Paid})
async def many_paid() -> int:
    return (await outlive.wait_for_signal("paid", Paid)).cents


async def test_each_signal_reaches_its_run_in_order(engine: outlive.Engine) -> None:
    """To one run or to many; those to one run come in the order of the list."""
    first, second = await engine.start(many_heard, 3), await engine.start(many_heard, 1)
    paid = await engine.start(many_paid)

    await engine.signal_many(
        [
            (first.id, "said", 1),
            (second.id, "said", "a"),
            {"signal": (first.id, "said", 2)},
            (paid.id, "paid", Paid(5)),
            (first.id, "said"),
        ]
    )

    assert [await in_time(run.result()) for run in (first, second, paid)] == [[1, 2, None], ["a"], 5]


async def test_all_signals_and_the_runs_that_they_start_are_one_write(
    engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred signals, each of which starts a run, are one call of `Store.deliver`."""
    store, sizes = store_of(engine), list[tuple[int, int]]()
    deliver = store.deliver

    async def counted(messages: Sequence[Message], *, starts: Sequence[Change] = (), **options: Any) -> Any:
        sizes.append((len(messages), len(starts)))
        return await deliver(messages, starts=starts, **options)

    monkeypatch.setattr(store, "deliver", counted)
    signals: list[Any] = [{"signal": (f"h-{number}", "said", number), "start": (many_heard, 2)} for number in range(50)]
    await engine.signal_many(signals * 2)

    assert sizes == [(100, 50)]
    assert [await in_time(engine.get(f"h-{number}").result()) for number in (0, 49)] == [[0, 0], [49, 49]]


async def test_a_list_that_is_sent_again_sends_nothing_twice(engine: outlive.Engine) -> None:
    """By its keys, also when some of the signals are new."""
    run = await engine.start(many_heard, 3)
    signals: list[Any] = [{"signal": (run.id, "said", number), "key": f"k{number}"} for number in range(3)]

    await engine.signal_many(signals[:2])
    await engine.signal_many(signals)

    assert await in_time(run.result()) == [0, 1, 2]
    await engine.signal_many(signals)  # Also after the end: they were taken.


async def test_runs_that_take_no_signal_are_refused_one_by_one(place: Place) -> None:
    """The error has the place of each, and the other signals were sent."""
    async with place.engine(limits=outlive.limits.Limits(inbox_messages_max=1), worker=False) as engine:
        full, run = await engine.start(many_heard, 1), await engine.start(many_heard, 1)
        ended = await engine.start(many_heard, 0)
        await engine.cancel(ended.id)
        with pytest.raises(SignalsRefusedError, match="3 of 5 signals were not sent, the other 2 were") as caught:
            await engine.signal_many(
                [
                    (full.id, "said", 1),
                    ("nothing", "said", 1),
                    (ended.id, "said", 1),
                    (full.id, "said", 2),
                    (run.id, "said", 1),
                ]
            )

    assert isinstance(caught.value, ConflictError)
    assert caught.value.count == 5
    codes = {at: it.code for at, it in caught.value.refused.items()}
    assert codes == {1: "run_not_found", 2: "run_finished", 3: "inbox_full"}
    async with place.engine() as engine:
        assert await in_time(engine.get(run.id).result()) == [1]


MISTAKES: dict[str, tuple[Any, type[OutliveError], str]] = {
    "not a signal": (7, ArgumentTypeError, r"signals\[1\]\.signal=7"),
    "only an id": (("r",), ArgumentTypeError, r"signals\[1\]\.signal="),
    "a name": (("r", ""), InvalidArgumentError, r"signals\[1\]\.name=''"),
    "an id": (("r 1", "said"), OutliveError, r"signals\[1\]"),
    "a key": ({"signal": ("r", "said"), "key": ""}, InvalidArgumentError, r"signals\[1\]\.key=''"),
    "an option": ({"signal": ("r", "said"), "timeout": 1}, ArgumentTypeError, r"signals\[1\]\.timeout=1"),
    "headers alone": ({"signal": ("r", "said"), "headers": {"a": "b"}}, InvalidArgumentError, r"signals\[1\]\.headers"),
    "a start": ({"signal": ("r", "said"), "start": (many_heard,)}, WrongArgumentsError, r"signals\[1\]: many_heard"),
    "no workflow": ({"signal": ("r", "said"), "start": ("none",)}, UnknownWorkflowError, r"signals\[1\]: no worker"),
    "a payload": (("paid", "paid", {"cents": "x"}), SignalTypeError, r"signals\[1\]: signal 'paid'"),
    "what has no form": (("r", "said", object()), OutliveError, r"signals\[1\]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_one_mistake_sends_nothing_and_says_where(engine: outlive.Engine, mistake: str) -> None:
    """The error names the place of the signal that cannot work, and the others were not sent."""
    signal, kind, text = MISTAKES[mistake]
    run = await engine.start(many_heard, 1)
    await engine.start(many_paid, id="paid")

    with pytest.raises(kind, match=text):
        await engine.signal_many([{"signal": (run.id, "said", 1), "start": (many_heard, 1)}, signal])

    assert await run.status() in ("pending", "running", "waiting")
    assert await engine.count() == 2


async def test_the_number_of_signals_has_a_limit(engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """More are refused before one of them is looked at, and so are payloads that are too large together."""
    with pytest.raises(InvalidArgumentError, match="at most 1,000 signals"):
        await engine.signal_many(("r", "said") for _ in range(signal_many.SIGNALS_MAX + 1))
    monkeypatch.setattr(signal_many, "BYTES_MAX", 100)
    with pytest.raises(InvalidArgumentError, match=r"signals\[1\]\.payload=.*100 bytes together"):
        await engine.signal_many([("r", "said", "a" * 60)] * 2)
    await engine.signal_many([])


async def test_a_signal_starts_a_run_by_its_name(engine: outlive.Engine) -> None:
    """A signal of the list creates it, as `start=` of `signal` does, without its code."""
    await Describer(store_of(engine), registry_of(many_heard)).describe()

    await engine.signal_many([{"signal": ("h-1", "said", 1), "start": ("many_heard", {"count": 1})}])

    assert await in_time(engine.get("h-1").result()) == [1]


class Refusing(outlive.middleware.Middleware):
    """Refuses some starts, and notes the others."""

    async def on_start(self, start: outlive.middleware.StartCall, call_next: Next) -> Any:
        if start.args == (9,):
            raise InvalidArgumentError("refusing", "count", 9, "fewer")
        stage.call(f"started {start.id}")
        return await call_next()


async def test_middleware_is_around_the_starts(place: Place) -> None:
    """Around each run that a signal may create; what it refuses sends nothing, and the error says which signal."""
    async with place.engine(middleware=[Refusing()]) as engine:
        run = await engine.start(many_heard, 1, id="there")
        with pytest.raises(InvalidArgumentError, match=r"signals\[1\]"):
            await engine.signal_many([(run.id, "said", 1), {"signal": ("h-1", "said"), "start": (many_heard, 9)}])
        await engine.signal_many([(run.id, "said", 1), {"signal": ("h-2", "said", 2), "start": (many_heard, 1)}])

        assert await in_time(engine.get("h-2").result()) == [2]
        assert await engine.count() == 2
        assert stage.calls == ["started there", "started h-2"]


async def test_the_quota_is_asked_for_the_runs_that_signals_start() -> None:
    """More than the quota leaves room for sends nothing."""
    async with TestEngine(namespace="many-signals") as engine:
        await engine.quotas.set(open_runs=2)
        signals: list[Any] = [{"signal": (f"h-{at}", "said", at), "start": (many_heard, 2)} for at in range(3)]
        with pytest.raises(QuotaExceededError):
            await engine.signal_many(signals)
        assert await engine.count() == 0
        await engine.signal_many(signals[:2])
        assert await engine.count() == 2


async def test_each_signal_is_in_the_audit_log(engine: outlive.Engine) -> None:
    """Under the name of the person who acts; a signal that was refused is not."""
    await engine.start(many_heard, 2, id="h-1")
    with engine.audit.acting("ann"), pytest.raises(SignalsRefusedError):
        await engine.signal_many(
            [("h-1", "said", 1), ("nothing", "said"), {"signal": ("h-2", "said"), "start": (many_heard, 1)}]
        )

    entries = await engine.audit.list(limit=10)
    assert {(it.actor, it.verb, it.target) for it in entries} == {("ann", "signal", "h-1"), ("ann", "signal", "h-2")}


def test_sync_code_has_it_too(tmp_path: Any) -> None:
    """`engine.sync.signal_many`."""
    with outlive.Engine(f"sqlite:{tmp_path / 'runs.db'}").sync as engine:
        run = engine.start(many_heard, 1)
        engine.signal_many([(run.id, "said", 1)])

        assert run.result(timeout=30) == [1]
