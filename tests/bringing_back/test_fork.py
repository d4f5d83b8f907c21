"""`fork`: a new run with the history of another one up to some point, edited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._kernel.client import retrying
from outlive.codecs import Encryption
from outlive.errors import RunExistsError, RunFailedError, UnserialisableError, WrongArgumentsError
from outlive.errors.run import AskNotFoundError, RunNotForkableError
from outlive.events import AskReceived, RunClaimed, RunForked, StepSucceeded
from outlive.testing import TestEngine, crash_everywhere, replay
from outlive.testing.crash.everywhere import POINTS_MAX
from outlive.testing.fsck import check_store
from tests.engine.inside import journal_of, store_of
from tests.engine.support import events_of

calls: list[str] = []
is_broken = False


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing was called."""
    global is_broken  # noqa: PLW0603 (a step has no other way to know)
    calls.clear()
    is_broken = False


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine whose store is sound in the end."""
    async with TestEngine() as engine:
        yield engine
        assert await check_store(store_of(engine)) == []


@outlive.step
async def fork_hold(order: str) -> str:
    """The first step."""
    calls.append(f"hold {order}")
    return f"hold of {order}"


@outlive.step
async def fork_check(order: str) -> bool:
    """A step whose result decides."""
    calls.append(f"check {order}")
    return False


@outlive.step
async def fork_charge(order: str, is_safe: bool) -> str:  # noqa: FBT001 (it is the result of a step)
    """The step that is forked at."""
    calls.append(f"charge {order} {is_safe}")
    if is_broken:
        raise ValueError("no card")
    return f"charged {order} {is_safe}"


@outlive.workflow
async def fork_order(order: str) -> list[str]:
    """Three steps and a day."""
    hold = await fork_hold(order)
    is_safe = await fork_check(order)
    early = str(outlive.uuid4())
    await asyncio.sleep(24 * 3600)
    return [hold, await fork_charge(order, is_safe), early, str(outlive.uuid4())]


async def test_fork_has_the_history_up_to_a_call(engine: TestEngine, tmp_path: Path) -> None:
    """With another result of a step; the original stays as it is."""
    run = await engine.start(fork_order, "a", id="o", tags={"team": "x"}, timeout=100_000)
    first = await run.result()
    before = await journal_of(run)

    fork = await engine.fork("o", at="fork_charge", set={"fork_check": True}, id="o-b", reason="a mistake")

    second = await fork.result()
    assert (fork.id, second[:2]) == ("o-b", ["hold of a", "charged a True"])
    assert calls == ["hold a", "check a", "charge a False", "charge a True"]
    # What was drawn before is part of the history, and what comes then is its own.
    assert (second[2] == first[2], second[3] == first[3]) == (True, False)
    assert await journal_of(run) == before
    events = await journal_of(fork)
    (forked,) = [event for event in events if isinstance(event, RunForked)]
    assert (forked.origin, forked.reason) == ("o", "a mistake")
    info = await fork.info()
    assert (info.tags, info.created_at > (await run.info()).created_at) == ({"team": "x"}, True)
    path = tmp_path / "fork.jsonl"
    await fork.export(path)
    assert replay(path, workflows=[fork_order]) == [path]
    assert await engine.fork("o-b", at="fork_charge", id="o-c") is not None
    assert (await engine.get("o-c").result())[:3] == second[:3]


async def test_fork_in_the_middle_of_a_sleep_sleeps_on(engine: TestEngine) -> None:
    """A fork of an open run that sleeps finishes the sleep, and repeats only the steps behind it."""
    run = await engine.start(fork_order, "a")
    await until_waiting(run)
    fork = await engine.fork(run.id)
    assert await run.result() != await fork.result()
    assert calls == ["hold a", "check a", "charge a False", "charge a False"]


async def test_fork_with_other_arguments_does_what_they_change(engine: TestEngine) -> None:
    """A fork with another input, as a tuple or by name, calls the steps whose arguments change; with equal input it
    calls none."""
    run = await engine.start(fork_order, "a")
    await run.result()
    calls.clear()
    same = await engine.fork(run.id, input=("a",))
    assert (await same.result())[0] == "hold of a"
    assert calls == []
    other = await engine.fork(run.id, input={"order": "b"})
    assert (await other.result())[:2] == ["hold of b", "charged b False"]
    assert calls == ["hold b", "check b", "charge b False"]


async def test_fork_of_a_failed_run(engine: TestEngine) -> None:
    """The result of the step that failed is given, or the step is called again."""
    global is_broken  # noqa: PLW0603
    is_broken = True
    run = await engine.start(fork_order, "a")
    with pytest.raises(RunFailedError):
        await run.result()
    given = await engine.fork(run.id, set={"fork_charge": "by hand"})
    assert (await given.result())[1] == "by hand"
    is_broken = False
    again = await engine.fork(run.id, at="fork_charge")
    assert (await again.result())[1] == "charged a False"
    assert calls.count("hold a") == 1


async def test_edits_that_do_not_fit_are_refused(engine: TestEngine) -> None:
    """Before anything is written."""
    run = await engine.start(fork_order, "a", id="o")
    await run.result()
    with pytest.raises(RunNotForkableError, match=r"no call 'pay'; it has fork_hold, fork_check, @timer, fork_charge"):
        await engine.fork("o", at="pay")
    with pytest.raises(RunNotForkableError, match="no step 'fork_charge' whose result"):
        await engine.fork("o", at="fork_check", set={"fork_charge": "x"})
    with pytest.raises(RunNotForkableError, match="events 0 to 7, and event 0 is always copied"):
        await engine.fork("o", at=0)
    with pytest.raises(UnserialisableError, match="give a value of type bool"):
        await engine.fork("o", set={"fork_check": "yes"})
    with pytest.raises(WrongArgumentsError):
        await engine.fork("o", input=("a", "b"))
    with pytest.raises(RunNotForkableError, match="fork_order@7 is not defined in this process"):
        await engine.fork("o", version=7)
    with pytest.raises(outlive.errors.InvalidArgumentError, match="set"):
        await engine.fork("o", set=["fork_check"])  # type: ignore[arg-type]
    with pytest.raises(RunExistsError, match="use another id"):
        await engine.fork("o", id="o")
    assert len(await engine.list()) == 1


@outlive.workflow(name="fork_versions")
async def fork_versions_1(order: str) -> str:
    """The old way."""
    return await fork_charge(await fork_hold(order), True)


@outlive.workflow(name="fork_versions", version=2)
async def fork_versions_2(order: str) -> str:
    """The same at first."""
    return await fork_charge(await fork_hold(order), False)


@outlive.workflow(name="fork_versions", version=3)
async def fork_versions_3(order: str) -> str:
    """Something else from the start."""
    return str(await fork_check(order))


async def test_fork_in_another_version(engine: TestEngine) -> None:
    """Its code replays the history, or says where it cannot."""
    run = await engine.start(fork_versions_1, "a")
    await run.result()
    fork = await engine.fork(run.id, at="fork_charge", version=2)
    assert await fork.result() == "charged hold of a False"
    assert (await fork.info()).version == 2
    with pytest.raises(RunNotForkableError, match="fork_versions@3 no longer matches the journal"):
        await engine.fork(run.id, at="fork_charge", version=3)


@outlive.workflow
async def fork_child(order: str) -> str:
    """A child that takes a while."""
    hold = await fork_hold(order)
    await asyncio.sleep(60)
    return await fork_charge(hold, True)


@outlive.workflow
async def fork_family() -> list[str]:
    """Children, of whom one goes when the result of a step is another one, and messages."""
    paid = await outlive.wait_for_signal("paid", str)
    answer = await outlive.wait_for_approval("go", assignees=["ann"])
    extra = [] if await fork_check("x") else [await fork_child("left out")]
    return [paid, answer.by, *extra, *await asyncio.gather(fork_child("a"), fork_child("b"))]


async def test_fork_of_a_tree(engine: TestEngine) -> None:
    """Messages and decisions are facts of the history, and children are numbered as the code asks for them."""
    run = await engine.start(fork_family, id="f")
    await run.signal("paid", "cash", key="k")
    await engine.settle()
    await run.approve("go", by="ann")
    whole = ["cash", "ann", *(f"charged hold of {name} True" for name in ("left out", "a", "b"))]
    assert await run.result() == whole
    calls.clear()

    middle = next(number for number, event in enumerate(await journal_of(run)) if event.run == 3)
    beside = await engine.fork("f", at=middle + 2)
    without = await engine.fork("f", set={"fork_check": True}, id="g")

    assert await without.result() == [*whole[:2], *whole[3:]]
    assert await beside.result() == whole
    assert "hold left out" not in calls
    with pytest.raises(RunNotForkableError, match="it is a child of 'f'; fork that run"):
        await engine.fork("f~1")
    assert sorted(each.id for each in await engine.list() if each.id.startswith("g")) == ["g", "g~1", "g~2"]


@outlive.workflow
async def fork_refund(cents: int) -> str:
    """Asks people about an amount, twice."""
    first = await outlive.wait_for_approval("teller", title=f"Refund {cents}?", assignees=[f"teller {cents}"])
    is_large = await fork_check(str(cents))
    second = await outlive.wait_for_approval("boss", title=f"Refund {cents}, {is_large}?")
    return f"{cents} {is_large} {first.by} {second.by}"


async def test_a_decision_counts_for_a_fork_that_asks_the_same(engine: TestEngine) -> None:
    """A fork with other arguments, or with another result before the question, asks its people again; earlier decisions
    stay."""
    run = await engine.start(fork_refund, 1, id="f")
    await engine.settle()
    await run.approve("teller", by="ann")
    await engine.settle()
    await run.approve("boss", by="bob")
    assert await run.result() == "1 False ann bob"

    same, larger, edited = [
        await engine.fork("f", id=id, **change)
        for id, change in (("same", {}), ("larger", {"input": (900,)}), ("edited", {"set": {"fork_check": True}}))
    ]
    await engine.settle()

    assert await same.result() == "1 False ann bob"
    [asked] = await larger.approvals()
    assert (asked.status, asked.title, asked.assignees) == ("pending", "Refund 900?", ("teller 900",))
    [decided, asked] = await edited.approvals()
    assert (decided.status, asked.status, asked.title) == ("approved", "pending", "Refund 1, True?")
    await larger.approve("teller", by="cleo")
    await engine.settle()
    await larger.reject("boss", by="bob")
    assert await larger.result() == "900 False cleo bob"


@outlive.workflow
async def fork_detaching() -> list[str]:
    """Waits for a tree of its own."""
    started = await outlive.start(fork_order, "d", detached=True, id="detached")
    return await started.result()


async def test_fork_that_would_wait_for_the_run_of_another_is_refused(engine: TestEngine) -> None:
    """It may be forked when that has ended."""
    run = await engine.start(fork_detaching)
    await until_waiting(run)
    with pytest.raises(RunNotForkableError, match="it waited there for run detached"):
        await engine.fork(run.id)
    result = await run.result()
    assert await (await engine.fork(run.id)).result() == result


async def test_payloads_are_packed_for_the_fork(tmp_path: Path) -> None:
    """A codec that binds values to their tree reads them in the fork."""
    codecs = [Encryption({"k": bytes(32)}, "k", required=True)]
    async with TestEngine(f"sqlite:{tmp_path}/runs.db", codecs=codecs) as engine:
        run = await engine.start(fork_order, "a" * 100_000)
        first = await run.result()
        fork = await engine.fork(run.id, at="fork_charge")
        assert (await fork.result())[:2] == first[:2]
        assert await check_store(store_of(engine)) == []


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_fork_survives_every_crash(points: int) -> None:
    """There is one fork, with the same end."""

    async def drive(engine: TestEngine, run_id: str) -> None:
        await engine.get(run_id).result()
        with suppress(RunExistsError):
            await engine.fork(run_id, at="fork_charge", id="forked")
        await engine.get("forked").result()

    await crash_everywhere(fork_versions_1, "a", drive=drive, max_points=points)


@outlive.workflow
async def fork_asked() -> int:
    """Answers one ask."""
    async for ask in outlive.asks("double", int):
        ask.reply(ask.body * 2)
        return ask.body
    return 0


async def test_run_that_was_asked_is_forked(engine: TestEngine) -> None:
    """Key and answer stay with the run that was asked; the fork lacks nothing, which the fixture has checked."""
    run = await engine.start(fork_asked)
    assert await engine.ask(run.id, "double", 7, key="k") == 14
    assert await run.result() == 7
    assert await (await engine.fork(run.id)).result() == 7


def fork_even(number: int) -> None:
    """Refuses odd numbers."""
    if number % 2:
        raise ValueError(f"{number} is odd")


@outlive.workflow
async def fork_picky() -> int:
    """Serves asks late, and answers one that is even."""
    await asyncio.sleep(3600)
    ask = await anext(outlive.asks("double", int, validate=fork_even))
    ask.reply(ask.body * 2)
    return ask.body


async def test_refusal_in_the_history_is_not_judged_again(engine: TestEngine) -> None:
    """An ask that came before its name was served is refused by an event. An ask of the fork may have the same key."""
    run = await engine.start(fork_picky)
    asked = [asyncio.ensure_future(engine.ask(run.id, "double", body, key=f"k{body}")) for body in (3, 4)]
    assert await run.result() == 4
    assert await asked[1] == 8
    with pytest.raises(outlive.errors.AskFailedError, match="3 is odd"):
        await asked[0]
    assert await (await engine.fork(run.id)).result() == 4
    assert await (await engine.fork(run.id, at="@refusal/double/k3")).result() == 4

    fork = await engine.fork(run.id, at=1)
    own = asyncio.ensure_future(engine.ask(fork.id, "double", 6, key="k3"))
    assert [await fork.result(), await own] == [6, 12]


@outlive.workflow
async def fork_serving() -> list[int]:
    """Thinks about each ask for an hour, and answers two."""
    bodies: list[int] = []
    async for ask in outlive.asks("double", int):
        await asyncio.sleep(3600)
        ask.reply(ask.body * 2)
        bodies.append(ask.body)
        if len(bodies) == 2:
            break
    await outlive.wait_condition(lambda: not outlive.current_run().asks_open)
    return bodies


async def test_open_asks_stay_with_the_run_that_was_asked(engine: TestEngine) -> None:
    """One that the code has taken, and one that it has not. The fork goes on with the first and gives no answer to it,
    also not to another ask with the same key. It does not have the second."""
    run = await engine.start(fork_serving)
    taken = asyncio.ensure_future(engine.ask(run.id, "double", 7, key="k"))
    await until_waiting(run)
    buffered = asyncio.ensure_future(engine.ask(run.id, "double", 8, key="l"))
    while len(await events_of(run, AskReceived)) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)

    fork = await engine.fork(run.id)
    own = asyncio.ensure_future(engine.ask(fork.id, "double", 100, key="k"))

    assert await fork.result() == [7, 100]
    assert await own == 200
    assert await run.result() == [7, 8]
    assert [await taken, await buffered] == [14, 16]
    with pytest.raises(AskNotFoundError):
        await engine.asks.answer(fork.id, "double", "l")
    again = await engine.fork(fork.id)
    assert await again.result() == [7, 100]


async def test_edit_that_changes_an_answer_changes_it_in_the_fork_only(engine: TestEngine) -> None:
    """The sender has the answer of the run that it asked."""
    run = await engine.start(fork_pricing)
    assert await engine.ask(run.id, "price", 2, key="k") == 14
    fork = await engine.fork(run.id, set={"fork_price": 9})

    assert [await run.result(), await fork.result()] == [14, 18]
    assert await engine.asks.answer(run.id, "price", "k") == 14


@outlive.step
async def fork_send(promise_id: str) -> None:
    """Sends the id of a promise."""
    calls.append(promise_id)


@outlive.workflow
async def fork_promising() -> int:
    """Waits for a promise whose id it has sent."""
    promise = outlive.promise(int)
    await fork_send(promise.id)
    return await promise


async def test_promise_of_a_fork_has_an_id_of_its_own(engine: TestEngine) -> None:
    """A fork behind the step that sent an id waits for another one; a fork at that step sends its own. The value of a
    promise that was settled before is a fact."""
    run = await engine.start(fork_promising, id="origin")
    await until_waiting(run)
    behind = await engine.fork("origin", id="behind")
    await until_waiting(behind)
    again = await engine.fork("origin", at="fork_send", id="again")
    await until_waiting(again)

    assert [promise_id.partition(":")[0] for promise_id in calls] == ["origin", "again"]
    for value, promise_id in enumerate(calls):
        assert await engine.promises.resolve(promise_id, value)
    assert [await run.result(), await again.result()] == [0, 1]
    assert await behind.why() == f"it waits for promise behind:{(await behind.why()).rpartition(':')[2]}"
    assert await (await engine.fork("origin")).result() == 0


@outlive.step
async def fork_price() -> int:
    """A step whose result becomes part of an answer."""
    return 7


@outlive.workflow
async def fork_pricing() -> int:
    """Answers one ask."""
    ask = await anext(outlive.asks("price", int))
    price = await fork_price() * ask.body
    ask.reply(price)
    await asyncio.sleep(1)
    return price


@pytest.mark.every_store
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_fork_on_every_store(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """With children."""
    url = f"sqlite:{tmp_path}/runs.db" if store == "sqlite" else request.getfixturevalue("postgres_url")
    async with TestEngine(url) as engine:
        run = await engine.start(fork_child, "a")
        await until_waiting(run)
        fork = await engine.fork(run.id, set={"fork_hold": "other"}, id="fork")
        assert [await run.result(), await fork.result()] == ["charged hold of a True", "charged other True"]
        events = await journal_of(fork)
        assert [type(event) for event in events[1:4]] == [StepSucceeded, RunForked, RunClaimed]
        assert await check_store(store_of(engine)) == []


async def until_waiting(run: outlive.types.RunHandle[Any]) -> None:
    """Return when a run waits."""
    while await run.status() != "waiting":  # noqa: ASYNC110
        await asyncio.sleep(0)


# -- Verbs that replay ----------------------------------------------------------------------------------------------

IS_WELL: list[bool] = []


@outlive.step
async def last_fails(number: int, last: int) -> int:
    """Fails at the end, as long as a test says so."""
    if number == last and not IS_WELL:
        raise ValueError("not yet")
    return number


@outlive.workflow
async def long_until_it_fails(steps: int) -> int:
    """Has an event for each of many steps."""
    return sum([await last_fails(number, steps) for number in range(1, steps + 1)])


@pytest.mark.parametrize("verb", ["fork", "retry"])
async def test_a_fork_and_a_retry_of_a_long_journal_give_way(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code is replayed for them, several times for a retry, and one who does so all the time stops no one else: the
    loop turns after so many events. [S33 S35 S51]"""
    monkeypatch.setattr(retrying, "EVENTS_AT_ONCE", 2)
    IS_WELL.clear()
    async with TestEngine() as engine:
        run = await engine.start(long_until_it_fails, 200, id="long")
        with pytest.raises(outlive.errors.RunFailedError):
            await run.result()
        IS_WELL.append(True)
        turns, is_over = 0, False

        def count() -> None:
            nonlocal turns
            turns += 1
            if not is_over:
                asyncio.get_running_loop().call_soon(count)

        asyncio.get_running_loop().call_soon(count)
        if verb == "fork":
            run = await engine.fork("long", id="forked", at="last_fails#200")
        else:
            await engine.retry("long")
        is_over = True

        assert turns > 100
        assert await run.result() == 20_100
