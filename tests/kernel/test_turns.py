"""Turns of calls that come in bursts: how many go on at a time, in which order, and what happens to given-up calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator

import pytest

from outlive._kernel.client.retrying import in_callback, in_turns
from outlive._kernel.client.turns import CALLS_PER_TURN_MAX, SENDS_MAX, Sends, Turns
from outlive.errors import EngineClosedError, StoreUnavailableError
from tests.engine.loop_time import LoopTime
from tests.engine.support import turns_of_the_loop

SECONDS = 5.0


async def test_a_hundred_calls_begin_in_one_turn_of_the_loop() -> None:
    """The calls behind them begin in later turns, in their order, and a call that was given up takes no place."""
    turns, began, counts = Turns(), list[int](), set[int]()

    async def call(number: int) -> None:
        await turns.take()
        began.append(number)

    calls = [asyncio.create_task(call(number)) for number in range(3 * CALLS_PER_TURN_MAX)]
    await asyncio.sleep(0)
    for given_up in calls[CALLS_PER_TURN_MAX : CALLS_PER_TURN_MAX + 50]:
        given_up.cancel()
    while len(began) < 250:
        counts.add(len(began))
        await asyncio.sleep(0)

    assert counts == {100, 200}
    assert began == [*range(100), *range(150, 300)]
    await turns_of_the_loop(3)
    assert turns.in_turn == 0


async def test_calls_that_wait_for_a_turn_go_on_when_the_engine_stops() -> None:
    """They raise by themselves; a call that was given up is left alone."""
    turns = Turns()
    waiting = [turns.wait() for _ in range(3)]
    waiting[1].cancel()

    turns.close()

    assert [each.done() and not each.cancelled() for each in waiting] == [True, False, True]


class Post:
    """Messages that are with the store until the test says so."""

    def __init__(self) -> None:
        self.sends = Sends(seconds=SECONDS)
        self.with_store: list[tuple[int, asyncio.Future[int]]] = []

    def send(self, number: int) -> asyncio.Task[int]:
        """Send a message."""

        async def deliver() -> int:
            future = asyncio.get_running_loop().create_future()
            self.with_store.append((number, future))
            answer: int = await future
            return answer

        return asyncio.create_task(self.sends.send(deliver))

    @property
    def sent(self) -> list[int]:
        """The numbers of the messages that the store has had."""
        return [number for number, _ in self.with_store]

    def answer(self, number: int) -> None:
        """The store has written it."""
        dict(self.with_store)[number].set_result(number)


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    """As many messages with the store as it may have."""
    post = Post()
    tasks = [post.send(number) for number in range(SENDS_MAX)]
    await turns_of_the_loop(2)
    assert len(post.sent) == SENDS_MAX
    yield post
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_room_goes_to_the_message_that_waits_longest(post: Post) -> None:
    """A message that comes in the turn in which room is given does not overtake it, and there are never more with the
    store than it may have."""
    waiting = [post.send(number) for number in (100, 101)]
    await turns_of_the_loop(2)
    assert len(post.sent) == SENDS_MAX

    post.answer(0)
    await asyncio.sleep(0)  # The room is given, and 100 has not gone on yet.
    late = post.send(102)
    await turns_of_the_loop(3)
    assert post.sent[SENDS_MAX:] == [100]

    for number in (100, 1, 2):
        post.answer(number)
        await turns_of_the_loop(3)
    assert post.sent[SENDS_MAX:] == [100, 101, 102]
    for number in (101, 102):
        post.answer(number)
    assert await asyncio.gather(*waiting, late) == [100, 101, 102]


@pytest.mark.parametrize("is_given", [False, True], ids=["before", "after it got the room"])
async def test_message_that_was_given_up_leaves_its_room_to_the_next(post: Post, *, is_given: bool) -> None:
    """Whether its caller gives up while it waits for room, or in the turn in which it got the room; and as many fit
    afterwards as before."""
    first, second = post.send(100), post.send(101)
    await turns_of_the_loop(2)
    if is_given:
        post.answer(0)
        await asyncio.sleep(0)
        first.cancel()
    else:
        first.cancel()
        await turns_of_the_loop(2)
        post.answer(0)
    await turns_of_the_loop(4)

    assert post.sent[SENDS_MAX:] == [101]
    assert first.cancelled()
    post.answer(101)
    assert await second == 101
    more = [post.send(number) for number in (200, 201)]
    await turns_of_the_loop(3)
    assert post.sent[SENDS_MAX + 1 :] == [200]
    for each in more:
        each.cancel()
    await asyncio.wait(more)


async def test_messages_that_wait_behind_a_silent_store_are_refused(post: Post, loop_time: LoopTime) -> None:
    """They have waited for the store as long as the message that it did not answer. A store that says at once that it
    is away refuses that message alone."""
    waiting = [post.send(number) for number in (100, 101, 102)]
    await turns_of_the_loop(2)
    away = StoreUnavailableError("the store", "it is away")
    post.with_store[0][1].set_exception(away)
    await turns_of_the_loop(3)
    assert post.sent[SENDS_MAX:] == [100]
    waiting[1].cancel()
    await turns_of_the_loop(2)

    loop_time.skip(seconds=SECONDS)
    post.with_store[1][1].set_exception(away)

    with pytest.raises(StoreUnavailableError, match="it has not answered for 5 s; the message was not sent") as caught:
        await waiting[2]
    assert caught.value.place == "the store"
    assert waiting[1].cancelled()
    assert not waiting[0].done()
    waiting[0].cancel()


async def test_messages_that_wait_for_room_are_refused_when_the_engine_stops(post: Post) -> None:
    """The error says what was not done; a message that was given up is left alone."""
    waiting = [post.send(number) for number in (100, 101)]
    await turns_of_the_loop(2)
    waiting[0].cancel()

    post.sends.close()

    with pytest.raises(EngineClosedError, match="sending a message"):
        await waiting[1]
    assert (await asyncio.wait([waiting[0]]))[0].pop().cancelled()


def steps(log: list[str]) -> Generator[None, None, str]:
    """Work in many turns, which can be given up."""
    try:
        for _ in range(1_000_000):
            yield
        return "done"
    except GeneratorExit:
        log.append("given up")
        raise


async def test_work_in_turns_leaves_the_loop_to_others_and_ends_with_its_caller() -> None:
    """Its result and its error are those of the generator; a caller that gives up ends it."""
    log: list[str] = []

    def few(error: BaseException | None) -> Generator[None, None, int]:
        yield
        if error is not None:
            raise error
        return 7

    assert await in_turns(few(None)) == 7
    with pytest.raises(KeyError, match="lost"):
        await in_turns(few(KeyError("lost")))
    working = asyncio.create_task(in_turns(steps(log)))
    await turns_of_the_loop(5)
    assert not working.done()

    working.cancel()
    await turns_of_the_loop(3)

    assert log == ["given up"]


async def test_work_in_a_callback_gives_its_error_to_its_caller() -> None:
    """No task is current while it works."""

    def fail() -> None:
        assert asyncio.current_task() is None
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        await in_callback(fail)
    assert await in_callback(asyncio.current_task) is None
