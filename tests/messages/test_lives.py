"""An id whose run ends and begins again: a cart, a conversation, an account. Messages with `on_conflict="attach_open"`
begin another run after the end, and keys count across all of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive.errors import (
    ConfigurationError,
    InvalidArgumentError,
    RunExistsError,
    RunFinishedError,
    RunNotFoundError,
)
from outlive.errors.run import AskRefusedError
from outlive.testing import TestEngine
from tests.engine.inside import store_of
from tests.engine.support import Place, in_time, stage, until

pytestmark = pytest.mark.any_store


@outlive.workflow
async def lives_cart(user: str) -> list[Any]:
    """Collects what is added, until it is to end; what comes after that it does not read."""
    got: list[Any] = []
    while (item := await outlive.wait_for_signal("add")) != "end":
        got.append(item)
    await lives_close(user)
    return got


@outlive.step
async def lives_close(user: str) -> None:
    stage.call(f"close {user}")
    if user == "slow":
        await stage.gate(user).pass_through()


@outlive.workflow
async def lives_desk() -> int:
    """Answers until it is to go home, which it does not answer."""
    answered = 0
    async for ask in outlive.asks("sum"):
        if ask.body == "home":
            return answered
        ask.reply([answered, ask.body])
        answered += 1
    return answered


def add(engine: outlive.Engine, item: Any, *, id: str = "cart", user: str = "ann", key: str | None = None) -> Any:
    """Add something to a cart, whichever life it is in."""
    return engine.signal(id, "add", item, key=key, start=(lives_cart, user), on_conflict="attach_open")


@pytest.mark.every_store
async def test_a_signal_after_the_end_begins_another_run(engine: outlive.Engine) -> None:
    """Under the same id; a run before stays as `<id>~old1` with its result."""
    for number in range(3):
        await add(engine, number)
        await add(engine, "end")
        assert await in_time(engine.get("cart").result()) == [number]

    names = {run.id: await in_time(engine.get(run.id).result()) for run in await engine.list(workflow="lives_cart")}
    assert names == {"cart~old1": [0], "cart~old2": [1], "cart": [2]}
    with pytest.raises(RunFinishedError):
        await engine.signal("cart", "add", 9, start=(lives_cart, "ann"))


@pytest.mark.every_store
async def test_keys_count_across_all_runs_of_an_id(engine: outlive.Engine) -> None:
    """A webhook that is delivered again after its run has ended neither begins a run nor reaches one."""
    for number in range(3):
        await add(engine, number, key=f"evt-{number}")
        await add(engine, "end", key=f"end-{number}")
        await in_time(engine.get("cart").result())
        for before in range(number + 1):
            await add(engine, before, key=f"evt-{before}")

    assert await engine.count(workflow="lives_cart") == 3
    await add(engine, 3, key="evt-3")
    await add(engine, 0, key="evt-0")
    await add(engine, "end")
    assert await in_time(engine.get("cart").result()) == [3]


@pytest.mark.every_store
async def test_what_a_run_did_not_read_is_read_by_the_next(engine: outlive.Engine) -> None:
    """Signals that arrive while a run ends are not lost: the next run of the id gets them first, in their order."""
    await add(engine, 1, user="slow")
    await add(engine, "end", user="slow")
    await stage.gate("slow").reached()
    for number in (2, 3):
        await add(engine, number, user="slow", key=f"late-{number}")
    stage.gate("slow").open()
    assert await in_time(engine.get("cart").result()) == [1]

    await add(engine, 4)
    await add(engine, 3, key="late-3")
    await add(engine, "end")
    assert await in_time(engine.get("cart").result()) == [2, 3, 4]


@pytest.mark.every_store
async def test_a_cancel_for_the_run_before_does_not_reach_the_next(place: Place) -> None:
    """Signals that wait for a run that a person ends go on to the next one; requests of people do not."""
    async with place.engine(worker=False) as engine:
        await add(engine, 1)
        await engine.cancel("cart")
        assert await engine.get("cart").status() == "cancelled"
        await add(engine, 2)
        await add(engine, "end")
    async with place.engine() as engine:
        assert await in_time(engine.get("cart").result()) == [1, 2]


@pytest.mark.every_store
async def test_many_senders_after_the_end_begin_one_run(engine: outlive.Engine) -> None:
    """However many come at once: each signal is read once."""
    await add(engine, "end")
    await in_time(engine.get("cart").result())

    await asyncio.gather(*(add(engine, number, key=f"evt-{number % 10}") for number in range(30)))
    await add(engine, "end")

    assert len(await in_time(engine.get("cart").result())) == 10
    assert await engine.count(workflow="lives_cart") == 2


async def test_two_programs_that_begin_it_again_begin_one_run(place: Place) -> None:
    """Another process may begin the run between the look and the write; its run gets the signal."""
    async with place.engine() as engine, place.engine(worker=False) as other:
        await add(engine, "end")
        await in_time(engine.get("cart").result())
        await asyncio.gather(*(add(each, each is engine) for each in (engine, other) * 5))
        await add(engine, "end")
        assert sorted(await in_time(engine.get("cart").result())) == [False] * 5 + [True] * 5
        assert await engine.count(workflow="lives_cart") == 2


@pytest.mark.every_store
async def test_an_ask_after_the_end_is_answered_by_another_run(engine: outlive.Engine) -> None:
    """Its key counts: an ask that a run before has answered has that answer."""

    async def ask(body: Any, key: str) -> Any:
        options: Any = {"start": (lives_desk,), "on_conflict": "attach_open"}
        return await in_time(engine.ask("desk", "sum", body, key=key, **options))

    assert [await ask(1, "a"), await ask(2, "b")] == [[0, 1], [1, 2]]
    with pytest.raises(AskRefusedError):
        await in_time(engine.ask("desk", "sum", "home", key="home"))
    assert await ask(3, "c") == [0, 3]
    assert await ask(1, "a") == [0, 1]
    assert await in_time(engine.asks.answer("desk", "sum", "b")) == [1, 2]
    assert await engine.count(workflow="lives_desk") == 2


async def test_an_ask_that_ends_runs_is_given_up(engine: outlive.Engine) -> None:
    """The sender hears of an end without an answer and asks the next run, but not for ever: it may be the ask."""
    await engine.start(lives_desk, id="desk")
    with pytest.raises(AskRefusedError):
        await in_time(engine.ask("desk", "sum", "home", start=(lives_desk,), on_conflict="attach_open"))

    assert await engine.count(workflow="lives_desk") == 3


async def test_many_signals_begin_runs_again(engine: outlive.Engine) -> None:
    """`signal_many` takes it too: the signals for runs that have ended are one more commit."""
    for id in ("a", "b"):
        await add(engine, "end", id=id)
        await in_time(engine.get(id).result())
    options: Any = {"start": (lives_cart, "ann"), "on_conflict": "attach_open"}
    signals: list[Any] = [{"signal": (id, "add", item), **options} for id in ("a", "b", "c") for item in (1, 2, "end")]

    await engine.signal_many(signals)

    assert [await in_time(engine.get(id).result()) for id in ("a", "b", "c")] == [[1, 2]] * 3
    with pytest.raises(InvalidArgumentError, match=r"signals\[0\]\.on_conflict"):
        await engine.signal_many([{"signal": ("a", "add"), "on_conflict": "attach_open"}])


async def test_a_start_lives_on_too(engine: outlive.Engine) -> None:
    """`engine.start(on_conflict="attach_open")` begins the same kind of run as a message: it knows the keys."""
    await add(engine, 1, key="evt-1")
    await add(engine, "end")
    await in_time(engine.get("cart").result())

    run = await engine.start(lives_cart, "ann", id="cart", on_conflict="attach_open")
    await add(engine, 1, key="evt-1")
    await add(engine, "end")
    assert await in_time(run.result()) == []


async def test_what_makes_no_sense_is_refused(engine: outlive.Engine) -> None:
    """It is for messages that start runs, and not in a transaction of the caller."""
    with pytest.raises(InvalidArgumentError, match="on_conflict"):
        await engine.signal("cart", "add", 1, on_conflict="attach_open")
    with pytest.raises(InvalidArgumentError, match="on_conflict"):
        await engine.signal("cart", "add", 1, start=(lives_cart, "ann"), on_conflict="reject")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="your transaction"):
        await engine.signal("cart", "add", 1, start=(lives_cart, "ann"), on_conflict="attach_open", connection=object())


async def test_a_principal_takes_no_id_from_a_run_that_it_may_not_know(engine: outlive.Engine) -> None:
    """Neither by a message nor by a start, also when the run has ended."""
    await add(engine, "end")
    await in_time(engine.get("cart").result())
    with engine.audit.acting("eve", tags={"tenant": "e"}):
        with pytest.raises(RunNotFoundError):
            await add(engine, 1)
        for on_conflict in ("attach_open", "reject_open", "cancel_open", "replace"):
            with pytest.raises(RunNotFoundError):
                await engine.start(lives_cart, "eve", id="cart", on_conflict=on_conflict)
    assert (await engine.get("cart").info()).tags == {}
    assert await engine.count(workflow="lives_cart") == 1


async def test_a_life_after_many_finds_a_name_in_few_looks(
    engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of the runs before are not counted one by one."""
    store, looks = store_of(engine), list[int]()
    find = store.find_runs

    async def looked(names: Any) -> Any:
        numbers = [int(name.partition("~old")[2]) for name in names if "~old" in name]
        looks.extend([len(numbers)] if numbers else [])
        found = await find(names)
        known = (await find(["cart"]))["cart"]
        return found | {f"cart~old{number}": known for number in numbers if number <= 54_321}

    await add(engine, "end")
    await in_time(engine.get("cart").result())
    monkeypatch.setattr(store, "find_runs", looked)
    await add(engine, 1)
    monkeypatch.undo()

    assert len(looks) < 6
    assert max(looks) <= 100
    assert {run.id for run in await engine.list(workflow="lives_cart")} == {"cart", "cart~old54322"}


# -- reject_open and cancel_open ---------------------------------------------------------------------------------------


@outlive.step
async def lives_release(what: str) -> None:
    stage.call(f"release {what}")
    if what == "slow":
        await stage.gate("release").pass_through()


@outlive.step(undo=lives_release)
async def lives_hold(what: str) -> str:
    stage.call(f"hold {what}")
    return what


@outlive.workflow
async def lives_order(what: str) -> str:
    async with outlive.saga():
        await lives_hold(what)
        await outlive.wait_for_signal("paid")
    return what


@pytest.mark.every_store
async def test_reject_open_refuses_only_while_the_run_is_open(engine: outlive.Engine) -> None:
    """After its end it starts a new one, which knows nothing of the run before."""
    first = await engine.start(lives_order, "a", id="order", on_conflict="reject_open")
    with pytest.raises(RunExistsError):
        await engine.start(lives_order, "b", id="order", on_conflict="reject_open")
    await first.signal("paid", key="evt-1")
    assert await in_time(first.result()) == "a"

    second = await engine.start(lives_order, "b", id="order", on_conflict="reject_open")
    await second.signal("paid", key="evt-1")
    assert await in_time(second.result()) == "b"
    assert await in_time(engine.get("order~old1").result()) == "a"


@pytest.mark.every_store
async def test_cancel_open_undoes_before_it_starts(engine: outlive.Engine) -> None:
    """The open run is cancelled with its undo steps, and the new one begins when that is over."""
    await engine.start(lives_order, "slow", id="order")

    async def is_held() -> bool:
        return stage.calls == ["hold slow"]

    await until(is_held)
    starting = asyncio.create_task(engine.start(lives_order, "b", id="order", on_conflict="cancel_open"))
    await stage.gate("release").reached()
    assert not starting.done()
    assert stage.calls == ["hold slow", "release slow"]
    stage.gate("release").open()
    run = await in_time(starting)
    await run.signal("paid")

    assert await in_time(run.result()) == "b"
    assert await engine.get("order~old1").status() == "cancelled"
    assert stage.calls == ["hold slow", "release slow", "hold b"]
    again = await engine.start(lives_order, "c", id="order", on_conflict="cancel_open")
    assert await again.status() in ("pending", "running", "waiting")


async def test_two_starts_that_cancel_are_one_after_the_other(engine: outlive.Engine) -> None:
    """Each cancels what is open when it comes: at the end one is open, and each hold of the others was released."""
    await asyncio.gather(
        *(engine.start(lives_order, f"o{number}", id="order", on_conflict="cancel_open") for number in range(5))
    )
    run = engine.get("order")
    await run.signal("paid")
    kept = await in_time(run.result())

    holds = [call.partition(" ")[2] for call in stage.calls if call.startswith("hold")]
    released = [call.partition(" ")[2] for call in stage.calls if call.startswith("release")]
    assert sorted(released) == sorted({*holds} - {kept})
    statuses = [run.status for run in await engine.list(workflow="lives_order")]
    assert sorted(statuses) == ["cancelled"] * (len(statuses) - 1) + ["succeeded"]


async def test_time_in_tests_reaches_the_end_of_a_run_that_is_cancelled() -> None:
    """A start that cancels waits in skipped time."""
    async with TestEngine() as engine:
        await engine.start(lives_order, "a", id="order")
        run = await engine.start(lives_order, "b", id="order", on_conflict="cancel_open")
        await run.signal("paid")
        assert await run.result() == "b"
