"""Asks: a question to a run, and exactly one answer, whatever becomes of either side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

import outlive
from outlive._kernel.client.answers import AnswerWaiters
from outlive._kernel.client.followers import Followers
from outlive._kernel.journal.redaction import HIDDEN
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.store.contract import Answer, MessageRefusal
from outlive.codecs import Encryption
from outlive.errors import (
    ArgumentTypeError,
    AskFailedError,
    InvalidArgumentError,
    RunNotFoundError,
    RunParkedError,
    UnreadableError,
)
from outlive.errors.program import NotInRunError
from outlive.errors.run import AskAnsweredError, AskNotFoundError, AskRefusedError, AskTimeoutError
from outlive.events import AskAnswered, AskReceived, RunCreated
from outlive.testing import TestEngine
from outlive.testing.watched_store import WatchedStore
from tests.engine.inside import journal_of, watch_through
from tests.engine.support import Place, events_of, hold, in_time, stage, until, waits

pytestmark = pytest.mark.any_store


@dataclass
class Item:
    name: str
    count: int


@dataclass
class Total:
    items: int
    cents: Decimal


class OutOfStockError(Exception):
    """Registered by the workflow below."""


@outlive.step
async def price_item(item: Item) -> int:
    return item.count * 100


def few(item: Item) -> None:
    """Refuse what is too much."""
    if item.count > 99:
        raise ValueError(f"{item.count} are too many")


@outlive.workflow(raises=(OutOfStockError,))
async def cart(user: str, most: int = 3) -> int:
    total = 0
    async for ask in outlive.asks("add", Item, validate=few):
        if ask.body.name == "moon":
            ask.fail(OutOfStockError(ask.body.name))
            continue
        total += await price_item(ask.body)
        ask.reply(Total(ask.body.count, Decimal(total) / 100))
        most -= 1
        if not most:
            break
    return total


@outlive.workflow
async def cart_that_begins_late(most: int) -> int:
    await outlive.wait_for_signal("open")
    async for ask in outlive.asks("add", Item, validate=few):
        ask.reply(ask.body.count)
        most -= 1
        if not most:
            break
    return most


@outlive.workflow
async def cart_that_keeps_silent(how: str) -> str:
    ask = await anext(outlive.asks("add", Item))
    if how == "raise":
        raise LookupError(ask.body.name)
    if how == "cancel":
        await outlive.wait_for_signal("never")
    if how == "wait":
        await asyncio.sleep(3600)
    return "gone"


# -- The answer --------------------------------------------------------------------------------------------------------


@pytest.mark.every_store
async def test_an_ask_has_an_answer(engine: outlive.Engine) -> None:
    """The body reaches the workflow as its type, and the reply the caller as the type that it names."""
    run = await engine.start(cart, "u-1", 2)

    first = await in_time(engine.ask(run.id, "add", Item("hat", 2), reply=Total))
    second = await in_time(run.ask("add", Item("cap", 1)))

    assert first == Total(2, Decimal("2"))
    assert second == {"items": 1, "cents": "3"}
    assert await in_time(run.result()) == 300


async def test_the_program_of_the_specification(engine: outlive.Engine) -> None:
    """An ask creates its run in the same transaction, and the same run answers the next one."""
    start, headers = (cart, "u-1"), {"tenant": "a"}
    for count in (1, 2, 3):
        item, key = Item("hat", count), f"evt-{count}"
        ask = engine.ask("cart-1", "add", item, start=start, headers=headers, key=key, timeout=5, reply=Total)
        assert (await in_time(ask)).items == count
    (created, *_) = await journal_of(engine, "cart-1")
    assert isinstance(created, RunCreated)
    assert created.headers == headers
    with pytest.raises(InvalidArgumentError, match="give start="):
        await engine.ask("cart-1", "add", Item("hat", 1), headers=headers)
    assert await in_time(engine.get("cart-1").result()) == 600


async def test_an_answer_may_be_an_error() -> None:
    """The caller gets one class of error, with the exception of the workflow as its cause; the run goes on."""
    async with TestEngine() as engine:
        run = await engine.start(cart, "u-1")
        with pytest.raises(AskFailedError, match=r"answered ask 'add' with an error: .*StockError: moon") as caught:
            await run.ask("add", Item("moon", 1), key="k")

        assert (caught.value.run_id, caught.value.name, caught.value.key) == (run.id, "add", "k")
        assert isinstance(caught.value.__cause__, OutOfStockError)
        assert (await run.ask("add", Item("hat", 1), reply=Total)).items == 1


async def test_a_body_that_cannot_be_read_is_answered_with_an_error() -> None:
    """It is not set aside: its sender waits for an answer."""
    async with TestEngine() as engine:
        run = await engine.start(cart, "u-1")
        with pytest.raises(AskFailedError) as caught:
            await run.ask("add", "a hat")

        assert isinstance(caught.value.__cause__, UnreadableError)
        assert await events_of(run, AskReceived) == []
        assert (await run.ask("add", Item("hat", 1), reply=Total)).items == 1


async def test_the_journal_has_the_ask_and_its_answer() -> None:
    """By name and key, and the answer says which call gave it."""
    async with TestEngine() as engine:
        run = await engine.start(cart, "u-1", 1)
        await run.ask("add", Item("hat", 1), key="evt-1")
        await run.result()
        (received,) = await events_of(run, AskReceived)
        (answered,) = await events_of(run, AskAnswered)

    assert (received.name, received.key, received.checked) == ("add", "evt-1", True)
    assert (answered.name, answered.key, answered.call) == ("add", "evt-1", "@answer/add/evt-1")


async def test_people_see_no_secret_of_an_ask() -> None:
    """Neither in the body nor in the answer."""
    async with TestEngine(redact=["name", "cents"]) as engine:
        run = await engine.start(cart, "u-1", 1)
        await run.ask("add", Item("topsecret", 1))
        shown = await run.history()

    bodies = [event.data["payload"] for event in shown if event.type in ("AskReceived", "AskAnswered")]
    assert bodies == [
        {"name": HIDDEN, "count": 1},
        {"items": 1, "cents": HIDDEN},
    ]


# -- The key -----------------------------------------------------------------------------------------------------------


async def test_the_same_key_is_the_same_ask(place: Place) -> None:
    """From another process, and after the end of the run, it has the answer of the first time."""
    async with place.engine() as engine:
        run = await engine.start(cart, "u-1", 1)
        first = await in_time(run.ask("add", Item("hat", 1), key="evt-1"))
        await in_time(run.result())
        async with place.engine(worker=False) as other:
            again = await in_time(other.ask(run.id, "add", Item("cap", 7), key="evt-1"))
            fetched = await in_time(other.asks.answer(run.id, "add", "evt-1", reply=Total))
        received = await events_of(run, AskReceived)

    assert first == again == {"items": 1, "cents": "1"}
    assert fetched == Total(1, Decimal(1))
    assert len(received) == 1


async def test_two_callers_of_one_ask_have_one_answer() -> None:
    """Both wait for the same."""
    async with TestEngine() as engine:
        run = await engine.start(cart, "u-1", 1)
        asks = [run.ask("add", Item("hat", 2), key="evt-1", reply=Total) for _ in range(3)]
        answers = await asyncio.gather(*asks)

    assert answers == [Total(2, Decimal(2))] * 3


async def test_an_answer_of_another_process_is_found(place: Place) -> None:
    """A client that has no worker looks for it in the store."""
    async with place.engine() as engine, place.engine(worker=False) as client:
        run = await engine.start(cart, "u-1", 1)
        answer = await in_time(client.ask(run.id, "add", Item("hat", 2), reply=Total))

    assert answer.items == 2


async def test_an_answer_that_is_there_takes_no_time() -> None:
    """However little of it the caller has: it is looked for before anything is waited for."""
    async with TestEngine() as engine:
        run = await engine.start(cart_with_two_names)
        await run.ask("add", "hat", key="k")
        assert await run.ask("add", "hat", key="k", timeout=0) == 1
        assert await run.answer("add", "k", timeout=0) == 1


async def test_a_timeout_leaves_the_ask_as_it_is() -> None:
    """The error says how to get the answer that comes later."""
    async with TestEngine() as engine:
        run = await engine.start(cart_that_begins_late, 1)
        with pytest.raises(AskTimeoutError, match=r"the ask goes on; engine\.asks\.answer") as caught:
            await run.ask("add", Item("hat", 2), timeout=5)
        await run.signal("open")

        assert isinstance(caught.value, TimeoutError)
        assert "signal 'open'" in caught.value.why
        assert await run.answer("add", caught.value.key) == 2


async def test_an_answer_that_was_never_asked_for_is_an_error() -> None:
    """By its key, its name, or the run."""
    async with TestEngine() as engine:
        run = await engine.start(cart, "u-1")
        with pytest.raises(AskNotFoundError, match="knows no ask 'add' with the key 'k'"):
            await run.answer("add", "k")
        with pytest.raises(RunNotFoundError):
            await engine.asks.answer("unknown", "add", "k")


class LookedAtStore:
    """A store that knows nothing, and notes that it was asked."""

    looks = 0

    async def find_runs(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """None."""
        return {}

    async def find_answers(self, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
        """None."""
        self.looks += 1
        return {}


async def test_a_caller_that_asks_all_the_time_gets_its_answers() -> None:
    """Each new ask is looked for soon, and does not put off the look for those before it."""
    store: Any = LookedAtStore()
    waiters = AnswerWaiters(store, pause_seconds=1000, followers=Followers(lambda ring: False))
    with waiters.expecting("run-1", "k") as waiter:
        async with asyncio.timeout(20):
            while not store.looks:
                waiters.sent(waiter)
                await asyncio.sleep(0)
        with pytest.raises(RunNotFoundError):
            await waiter.future
    waiters.close()


class AnsweringStore:
    """A store whose run answers, and ends, between the first question to it and the second."""

    def __init__(self) -> None:
        self.questions = 0
        self.answer: Any = object()

    async def find_runs(self, run_ids: Sequence[str]) -> dict[str, Any]:
        """The run, as it is now."""
        self.questions += 1
        status = RunStatus.RUNNING if self.questions == 1 else RunStatus.SUCCEEDED
        return {run_id: SimpleNamespace(id=run_id, root_id=run_id, number=0, status=status) for run_id in run_ids}

    async def find_answers(self, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Any]:
        """The answer, once it is given."""
        self.questions += 1
        return dict.fromkeys(asks, None if self.questions == 1 else self.answer)


async def test_answer_that_comes_with_the_end_of_its_run_is_not_missed() -> None:
    """Whichever question the store is asked first, a run that has ended has given all its answers."""
    store: Any = AnsweringStore()
    waiters = AnswerWaiters(store, pause_seconds=1000, followers=Followers(lambda ring: False))
    with waiters.expecting("run-1", "k") as waiter:
        await waiters.seek(waiter)
        assert await in_time(waiter.future) is store.answer
    waiters.close()


async def test_answer_of_this_process_needs_no_look_at_the_store() -> None:
    """A run that answers here tells the callers that wait here, however long the pause between two looks is."""
    store: Any = LookedAtStore()
    waiters = AnswerWaiters(store, pause_seconds=1000, followers=Followers(lambda ring: False))
    with waiters.expecting("run-1", "k") as waiter:
        answer: Any = SimpleNamespace(key="k")
        waiters.announce([answer])
        assert await in_time(waiter.future) is answer
    assert not store.looks
    waiters.close()


# -- Refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.every_store
async def test_a_validator_refuses_without_a_trace(engine: outlive.Engine) -> None:
    """The answer is what it raised, for good; the journal has no ask."""
    run = await engine.start(cart, "u-1", 1)
    await waits(run)
    for body in (Item("hat", 100), Item("hat", 5)):
        with pytest.raises(AskFailedError, match="100 are too many") as caught:
            await in_time(run.ask("add", body, key="evt-1"))
        assert isinstance(caught.value.__cause__, ValueError)

    assert (await in_time(run.ask("add", Item("hat", 5), reply=Total))).items == 5
    assert await in_time(run.result()) == 500
    assert [event.key for event in await events_of(run, AskReceived)] != ["evt-1"]
    assert len(await events_of(run, AskReceived)) == 1


@outlive.workflow
async def cart_beside_a_step() -> str:
    async def serve() -> None:
        async for ask in outlive.asks("add", Item, validate=few):
            ask.reply(ask.body.count)

    server = asyncio.create_task(serve())
    held = await hold("work")
    server.cancel()
    return held


async def test_a_refusal_does_not_wait_for_a_step_that_runs(engine: outlive.Engine) -> None:
    """A validator refuses an ask while a step of the run is under way, and the journal stays as it was."""
    run = await engine.start(cart_beside_a_step)
    await stage.gate("work").reached()
    before = await journal_of(run)

    for _ in range(2):
        with pytest.raises(AskFailedError, match="too many"):
            await in_time(run.ask("add", Item("hat", 100)))
    assert await journal_of(run) == before

    assert await in_time(run.ask("add", Item("hat", 1))) == 1
    stage.gate("work").open()
    await in_time(run.result())


async def test_an_early_ask_is_judged_when_it_is_taken() -> None:
    """It is an event already, and its refusal is one too. The others are taken in their order."""
    async with TestEngine() as engine:
        run = await engine.start(cart_that_begins_late, 2)
        early = [run.ask("add", body) for body in (Item("hat", 1), Item("hat", 100), "a hat", Item("cap", 2))]
        tasks = [asyncio.create_task(each) for each in early]
        await engine.settle()
        await run.signal("open")
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        received = await events_of(run, AskReceived)

    assert answers[0] == 1
    assert answers[3] == 2
    assert [str(each.__cause__)[:3] for each in answers[1:3] if isinstance(each, AskFailedError)] == ["100", "ask"]
    assert [event.checked for event in received] == [False] * 4


@pytest.mark.parametrize(
    ("how", "status"), [("return", "succeeded"), ("raise", "failed"), ("wait", "timed_out"), ("cancel", "cancelled")]
)
async def test_an_ask_that_is_open_at_the_end_is_refused(how: str, status: str) -> None:
    """Its sender hears how the run ended, then and whenever it asks again."""
    async with TestEngine() as engine:
        run = await engine.start(cart_that_keeps_silent, how, timeout=60 if how == "wait" else None)
        ask = asyncio.create_task(run.ask("add", Item("hat", 1), key="k"))
        if how == "cancel":
            await engine.settle()
            await run.cancel()
        with pytest.raises(AskRefusedError, match="without an answer to ask 'add'") as caught:
            await ask
        with pytest.raises(AskRefusedError):
            await run.ask("add", Item("hat", 1), key="k")

    assert (caught.value.run_id, caught.value.status, caught.value.key) == (run.id, status, "k")


async def test_a_run_that_is_over_or_unknown_cannot_be_asked() -> None:
    """Each says so at once, and what to do."""
    async with TestEngine() as engine:
        with pytest.raises(RunNotFoundError, match=r"send it with a workflow to start"):
            await engine.ask("cart-9", "add", Item("hat", 1))
        run = await engine.start(cart, "u-1", 1)
        await run.ask("add", Item("hat", 1))
        await run.result()
        with pytest.raises(AskRefusedError) as caught:
            await run.ask("add", Item("hat", 1))

    assert caught.value.status == "succeeded"


async def test_an_ask_to_a_parked_run_says_so() -> None:
    """The ask waits in its inbox, and is answered when the run goes on."""
    async with TestEngine() as engine:
        run = await engine.start(cart_that_parks)
        with pytest.raises(RunParkedError) as caught:
            await run.ask("add", Item("hat", 1), key="k")
        assert "asks.answer" in [advice.verb for advice in caught.value.advice]
        Parking.is_on = False
        await run.resume()
        assert await run.answer("add", "k") == 1
        Parking.is_on = True


class Parking:
    """Whether the workflow below parks itself."""

    is_on = True


@outlive.workflow
async def cart_that_parks() -> None:
    if Parking.is_on:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, print)
    ask = await anext(outlive.asks("add", Item))
    ask.reply(ask.body.count)


async def test_a_run_that_takes_the_place_of_another_knows_nothing_of_its_asks() -> None:
    """Their senders are not left waiting."""
    async with TestEngine() as engine:
        run = await engine.start(cart_that_begins_late, 1, id="cart-1")
        ask = asyncio.create_task(run.ask("add", Item("hat", 1), key="k"))
        await engine.settle()
        await engine.start(cart, "u-2", id="cart-1", on_conflict="replace")
        with pytest.raises(AskNotFoundError):
            await ask


# -- Serving -----------------------------------------------------------------------------------------------------------


@outlive.workflow
async def cart_with_two_names() -> list[str]:
    items: list[str] = []

    async def add() -> None:
        async for ask in outlive.asks("add", str):
            await price_item(Item(ask.body, 1))
            items.append(ask.body)
            ask.reply(len(items))

    async def remove() -> None:
        async for ask in outlive.asks("remove", str, validate=items.index):
            items.remove(ask.body)
            ask.reply(len(items))

    servers = [asyncio.create_task(add()), asyncio.create_task(remove())]
    await outlive.wait_for_signal("checkout")
    await outlive.wait_condition(lambda: not outlive.current_run().asks_open)
    for server in servers:
        server.cancel()
    return items


async def test_asks_are_served_beside_the_main_line() -> None:
    """Several names at once; a validator may look at what the workflow has."""
    async with TestEngine() as engine:
        run = await engine.start(cart_with_two_names)
        assert [await run.ask("add", name) for name in ("hat", "cap")] == [1, 2]
        assert await run.ask("remove", "hat") == 1
        with pytest.raises(AskFailedError, match="not in list"):
            await run.ask("remove", "hat")
        assert await run.why() == "it waits for signal 'checkout' or ask 'add' or ask 'remove'"
        assert [each.id for each in await engine.list(waiting_for="remove")] == [run.id]
        await run.signal("checkout")
        assert await run.result() == ["cap"]


async def test_a_run_waits_until_all_is_answered() -> None:
    """Asks that came before it wanted to end are answered, also asks that wait for others."""
    async with TestEngine() as engine:
        run = await engine.start(cart_with_two_names)
        await engine.settle()
        tasks = [asyncio.create_task(run.ask("add", name)) for name in ("hat", "cap", "tie")]
        await run.signal("checkout")
        results = await asyncio.gather(*tasks, run.result(), return_exceptions=True)

    *answers, items = results
    assert all(isinstance(each, int | AskRefusedError) for each in answers)
    assert len(items) == sum(isinstance(each, int) for each in answers)  # type: ignore[arg-type]


@outlive.workflow
async def cart_with_errors() -> list[str]:
    seen: list[str] = []
    first = await anext(outlive.asks("add"))
    first.reply()
    answers: list[Callable[[], None]] = [first.reply, lambda: first.fail(ValueError())]
    for answer in answers:
        try:
            answer()
        except AskAnsweredError as error:
            seen.append(str(error))
    try:
        (await anext(outlive.asks("add", reply=int))).reply("text")
    except outlive.errors.OutliveError as error:
        seen.append(type(error).__name__)
    return seen


async def test_an_ask_is_answered_once() -> None:
    """A second answer is an error in the workflow; and a value that cannot be stored is not an answer."""
    async with TestEngine() as engine:
        run = await engine.start(cart_with_errors)
        assert await run.ask("add", key="k") is None
        with pytest.raises(AskRefusedError):
            await run.ask("add")
        seen = await run.result()

    assert seen == ["ask 'add' (key 'k') is answered already; reply or fail once, and look at is_answered"] * 2 + [
        "UnserialisableError"
    ]


@outlive.workflow
async def asked_child() -> str:
    ask = await anext(outlive.asks("name", str))
    ask.reply(ask.body.upper())
    return ask.body


@outlive.workflow
async def parent_of_asked() -> str:
    return await asked_child()


async def test_a_child_is_asked_by_its_own_id() -> None:
    """An ask reaches a child run by the id of the child."""
    async with TestEngine() as engine:
        run = await engine.start(parent_of_asked)
        await engine.settle()
        assert await engine.ask(f"{run.id}~1", "name", "ann") == "ANN"
        assert await run.result() == "ann"


async def test_arguments_of_an_ask_are_checked() -> None:
    """A wrong argument of `ask` or `asks` is refused by its name."""
    with pytest.raises(NotInRunError):
        outlive.asks("add")
    async with TestEngine() as engine:
        for wrong, error in (({"name": "a/b"}, InvalidArgumentError), ({"key": 7}, ArgumentTypeError)):
            given: dict[str, Any] = {"name": "add"} | wrong
            with pytest.raises(error, match=f"engine.ask.*{next(iter(wrong))}"):
                await engine.ask("cart-1", **given)
        with pytest.raises(outlive.errors.RunFailedError, match="give a plain function"):
            await (await engine.start(cart_with_async_validator)).result()


@outlive.workflow
async def cart_with_async_validator() -> None:
    async def check(body: object) -> None: ...

    outlive.asks("add", validate=check)


# -- Generations -------------------------------------------------------------------------------------------------------


@outlive.workflow
async def cart_in_generations(generation: int) -> int:
    async for ask in outlive.asks("add", int):
        if ask.body == generation:
            # Not answered: the next generation is asked again.
            outlive.continue_as_new(generation + 1)
        ask.reply([generation, ask.body])
        if ask.body > 9:
            break
    return generation


@pytest.mark.every_store
async def test_open_asks_go_to_the_next_generation(engine: outlive.Engine) -> None:
    """The next generation answers the asks that wait and the ask that was taken. Answers of earlier generations are
    found."""
    run = await engine.start(cart_in_generations, 1)
    asks = [asyncio.create_task(in_time(run.ask("add", body, key=f"k{body}"))) for body in (5, 1, 2, 7)]
    answers = [await each for each in asks]

    assert [body for _, body in answers] == [5, 1, 2, 7]
    assert answers[1][0] > 1  # The first generation took it and did not answer it.
    assert await in_time(run.ask("add", 0, key="k1")) == answers[1]
    last, _ = await in_time(run.ask("add", 10))
    assert await in_time(run.result()) == last > 1


# -- Payloads, threads, other code -------------------------------------------------------------------------------------


@outlive.workflow
async def echo_in_generations(generation: int) -> int:
    ask = await anext(outlive.asks("echo", str))
    ask.reply(ask.body * 2)
    if generation < 2:
        outlive.continue_as_new(generation + 1)
    return generation


async def test_large_and_secret_answers_are_read_by_those_who_have_the_key(place: Place) -> None:
    """They are bound to the run's id: the answers of an earlier generation too. Without the key they cannot be read."""
    codecs, large = [Encryption({"k": bytes(32)}, "k", required=True)], "x" * 200_000
    async with place.engine(codecs=codecs) as engine:
        run = await engine.start(echo_in_generations, 1)
        for key in ("first", "second"):
            assert await in_time(run.ask("echo", large, key=key)) == large * 2
        assert await in_time(run.result()) == 2
        assert await in_time(run.answer("echo", "first", reply=str)) == large * 2
    async with place.engine(worker=False) as client:
        with pytest.raises(UnreadableError):
            await in_time(client.asks.answer(run.id, "echo", "first"))


async def test_a_thread_can_ask(engine: outlive.Engine) -> None:
    """With the same verbs."""

    def work() -> list[Any]:
        run = engine.sync.start(cart, "u-1", 2)
        first = engine.sync.ask(run.id, "add", Item("hat", 1), key="k", reply=Total)
        return [first, run.ask("add", Item("cap", 1), reply=Total), run.answer("add", "k", reply=Total)]

    assert await in_time(asyncio.to_thread(work)) == [Total(1, Decimal(1)), Total(1, Decimal(2)), Total(1, Decimal(1))]


class Strictness:
    """What the validator below allows."""

    most = 5


def within(number: int) -> None:
    """Refuse what is over the limit of the day."""
    if number > Strictness.most:
        raise ValueError(f"{number} is over {Strictness.most}")


@outlive.workflow
async def cart_with_moods(most: int) -> list[int]:
    await outlive.wait_for_signal("open")
    seen: list[int] = []
    async for ask in outlive.asks("add", int, validate=within):
        seen.append(ask.body)
        ask.reply(len(seen))
        if len(seen) == most:
            break
    return seen


async def test_a_replay_does_not_call_a_validator_again(place: Place) -> None:
    """A replay keeps the asks that a validator accepted, even if the validator would refuse them now."""
    async with place.engine() as engine:
        run = await engine.start(cart_with_moods, 3)
        early = [asyncio.create_task(run.ask("add", number, key=f"k{number}")) for number in (4, 8)]
        await until_received(run, 2)
        await run.signal("open")
        answers = await asyncio.gather(*early, return_exceptions=True)
        assert await in_time(run.ask("add", 5)) == 2
    Strictness.most = 2
    try:
        async with place.engine() as engine:
            with pytest.raises(AskFailedError, match="5 is over 2"):
                await in_time(engine.ask(run.id, "add", 5))
            Strictness.most = 10
            assert await in_time(engine.ask(run.id, "add", 9)) == 3
            assert await in_time(engine.get(run.id).result()) == [4, 5, 9]
    finally:
        Strictness.most = 5
    assert answers[0] == 1
    assert isinstance(answers[1], AskFailedError)


class ForgetfulStore(WatchedStore):
    """A store in which another worker owns the tree when the first refusal comes: it is not a refusal."""

    refusals = 0

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        """Leave the first one as it is, and let the validator change its mind."""
        self.refusals += 1
        if self.refusals > 1:
            await self.inner.refuse_messages(worker_id, refusals)
        Strictness.most = 10


async def test_a_refusal_that_is_not_stored_is_not_an_answer() -> None:
    """A caller whose refusal was not stored waits for the answer of the store, because that worker may have lost the
    run."""
    engine = TestEngine()
    store = watch_through(engine, ForgetfulStore)
    try:
        async with engine:
            run = await engine.start(cart_with_moods, 1)
            await run.signal("open")
            await engine.settle()
            assert await run.ask("add", 8) == 1
    finally:
        Strictness.most = 5
    assert store.refusals == 1


async def until_received(run: outlive.types.RunHandle[Any], count: int) -> None:
    """Return when so many asks are in the journal."""

    async def are_there() -> bool:
        return len(await events_of(run, AskReceived)) == count

    await until(are_there)


async def test_a_run_that_is_brought_back_may_answer_what_its_end_refused() -> None:
    """For a caller that asks again; an answer that was given stays."""
    async with TestEngine() as engine:
        run = await engine.start(cart_that_fails_once)
        assert await run.ask("add", 1, key="k1") == 1
        with pytest.raises(AskRefusedError, match="failed"):
            await run.ask("add", 2, key="k2")
        Fragile.is_broken = False
        await engine.retry(run.id)
        assert await run.ask("add", 0, key="k2") == 3
        assert await run.answer("add", "k1") == 1
        assert await run.result() == 3
    Fragile.is_broken = True


class Fragile:
    """Whether the step below fails."""

    is_broken = True


@outlive.step
async def add_fragile(total: int, number: int) -> int:
    if Fragile.is_broken and number == 2:
        raise ConnectionError("busy")
    return total + number


@outlive.workflow
async def cart_that_fails_once() -> int:
    total = 0
    async for ask in outlive.asks("add", int):
        total = await add_fragile(total, ask.body)
        ask.reply(total)
        if total > 2:
            break
    return total
