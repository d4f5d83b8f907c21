"""Rate limits as arithmetic: never more than the tiers allow, whenever callers ask, and every caller gets a turn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive._kernel.model.limit import (
    BEGINS_MAX,
    LimitState,
    LimitTurn,
    Room,
    Tier,
    ask_limit,
    check_cost,
    dated,
    give_back,
    try_limit,
)
from outlive.errors import ConfigurationError
from outlive.limits import FixedWindow, RateLimit, SlidingWindow, TokenBucket

SECOND = 1_000_000
AT = 1_700_000_000 * SECOND
"""The beginning of a window of 10 or 100 seconds."""


class Began(NamedTuple):
    """A call that was let through."""

    at: int
    cost: int


def take(
    limit: RateLimit, state: LimitState, now_at: int, *, cost: int = 1, wait_max: int = 0, has_turn: bool = False
) -> tuple[LimitState, int | str]:
    """Ask; the instant of a room, or which tier has none."""
    state, answer = ask_limit(limit, state, cost=cost, now_at=now_at, wait_max=wait_max, has_turn=has_turn)
    return state, answer.at if isinstance(answer, Room) else answer.tier


def test_a_bucket_lets_its_burst_through_at_once_and_then_one_at_a_time() -> None:
    """Three at once, and then one in every half second."""
    limit, state = RateLimit("api", TokenBucket(2, burst=3)), LimitState()

    found = []
    for _ in range(5):
        state, answer = ask_limit(limit, state, cost=1, now_at=AT, wait_max=10 * SECOND)
        found.append((answer.at - AT) / SECOND)

    assert [0, 0, 0, 0.5, 1] == found


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    """A day without calls does not make a day's worth of calls."""
    limit, state = RateLimit("api", TokenBucket(1, burst=2)), LimitState()
    state, _ = take(limit, state, AT)

    later_at = AT + 86_400 * SECOND
    answers = []
    for _ in range(3):
        state, answer = take(limit, state, later_at)
        answers.append(answer)

    assert [later_at, later_at, "1 a second, 2 at once"] == answers


def test_a_window_is_empty_again_when_the_next_one_begins() -> None:
    """A full window names the beginning of the next one, which is empty."""
    limit, state = RateLimit("api", FixedWindow(2, 10)), LimitState()
    state, _ = take(limit, state, AT + SECOND)
    state, _ = take(limit, state, AT + 9 * SECOND)

    _, answer = try_limit(limit, state, cost=1, now_at=AT + 9 * SECOND)
    state, next_answer = take(limit, state, AT + 10 * SECOND)

    assert LimitTurn(AT + 10 * SECOND, "2 in 10 s") == answer
    assert AT + 10 * SECOND == next_answer


def test_a_fixed_window_lets_twice_its_limit_through_at_its_edge_and_a_sliding_window_does_not() -> None:
    """Five in 2 s: around the edge of a fixed window ten begin within 0.3 s."""
    edge_at, began = AT + 2 * SECOND, {}
    for tier in (FixedWindow(5, 2), SlidingWindow(5, 2)):
        limit, state = RateLimit("api", tier), LimitState()
        began[type(tier)] = 0
        for at in [edge_at - SECOND // 10] * 5 + [edge_at + SECOND // 5] * 5:
            state, answer = try_limit(limit, state, cost=1, now_at=at)
            began[type(tier)] += isinstance(answer, Room)

    assert {FixedWindow: 10, SlidingWindow: 5} == began


def test_a_sliding_window_has_room_one_period_after_the_call_whose_place_is_taken() -> None:
    """To the microsecond, whichever call it is."""
    limit, state = RateLimit("api", SlidingWindow(2, 10)), LimitState()
    state, _ = take(limit, state, AT + 3)
    state, _ = take(limit, state, AT + 9 * SECOND)

    _, refused = try_limit(limit, state, cost=1, now_at=AT + 10 * SECOND)
    state, third = take(limit, state, AT + 10 * SECOND + 3)
    _, both = try_limit(limit, state, cost=2, now_at=AT + 10 * SECOND + 4)

    assert LimitTurn(AT + 10 * SECOND + 3, "2 in any 10 s") == refused
    assert AT + 10 * SECOND + 3 == third
    assert AT + 20 * SECOND + 3 == both.at


@pytest.mark.parametrize("most", [1, BEGINS_MAX, BEGINS_MAX + 1, 1000, 50_000])
def test_a_sliding_window_is_small_however_many_calls_it_allows(most: int) -> None:
    """It stores a hundred instants, and room comes back at most a hundredth of the period late."""
    tier = SlidingWindow(most, 10)
    limit, state, at = RateLimit("api", tier), LimitState(), AT
    began, asked_every = 0, max(7, 20 * SECOND // (3 * most))
    while at < AT + 40 * SECOND and began < 3 * most:
        cost = max(1, most // 170)
        state, answer = try_limit(limit, state, cost=cost, now_at=at)
        at, began = (at + asked_every, began + cost) if isinstance(answer, Room) else (answer.at, began)
        assert len(state.spent.get(tier.label, ())) <= 2 * (BEGINS_MAX + 2)

    assert at - AT <= 10 * SECOND * 3 * 1.01
    assert len(msgspec.json.encode(state)) < 5_000


def test_turns_of_a_sliding_window_that_are_given_back_are_given_again() -> None:
    """Calls came at 0, 1 and 2 s, and each later turn is a period after one of them."""
    limit, state = RateLimit("api", SlidingWindow(3, 10)), LimitState()
    for second in range(3):
        state, _ = take(limit, state, AT + second * SECOND)
    for _ in range(9):
        state, _ = take(limit, state, AT + 2 * SECOND)
    for _ in range(8):
        state = give_back(limit, state, cost=1)

    turns = []
    for _ in range(5):
        state, answer = ask_limit(limit, state, cost=1, now_at=AT + 2 * SECOND)
        turns.append((answer.at - AT) // SECOND)

    assert [11, 12, 20, 21, 22] == turns


def test_a_clock_that_goes_back_lets_no_more_through() -> None:
    """A store whose clock was set back by an hour counts from its last instant on."""
    limit, state = RateLimit("api", SlidingWindow(1, 10)), LimitState()
    state, _ = take(limit, state, AT)

    _, answer = try_limit(limit, state, cost=1, now_at=AT - 3600 * SECOND)

    assert LimitTurn(AT + 10 * SECOND, "1 in any 10 s") == answer


def test_a_costly_call_takes_as_much_as_it_costs() -> None:
    """Weights are counted, and nothing is free unless it costs 0."""
    limit, state = RateLimit("api", TokenBucket(1, burst=10)), LimitState()
    state, first = take(limit, state, AT, cost=7)
    _, second = try_limit(limit, state, cost=4, now_at=AT)
    state, third = take(limit, state, AT, cost=3)

    assert [AT, AT] == [first, third]
    assert AT + SECOND == second.at


def test_a_call_that_one_tier_refuses_costs_no_tier_anything() -> None:
    """All tiers are charged, or none; the tier without room is named."""
    limit = RateLimit("api", TokenBucket(100, burst=10), FixedWindow(1, 10))
    state, _ = try_limit(limit, LimitState(), cost=1, now_at=AT)

    after, answer = try_limit(limit, state, cost=1, now_at=AT)

    assert after == state
    assert LimitTurn(AT + 10 * SECOND, "1 in 10 s") == answer


def test_callers_that_wait_long_have_turns_of_their_own() -> None:
    """Callers that wait long get turns one second apart, and do not come back at the same instant."""
    limit, state = RateLimit("api", TokenBucket(1, burst=1)), LimitState()
    turns = []
    for _ in range(5):
        state, answer = ask_limit(limit, state, cost=1, now_at=AT, wait_max=0)
        turns.append((answer.at - AT) // SECOND)

    assert [0, 1, 2, 3, 4] == turns


def test_a_newcomer_does_not_take_the_turn_of_another_caller() -> None:
    """A caller finds room on its turn, and a newcomer at that instant is lined up behind it."""
    limit, state = RateLimit("api", TokenBucket(1, burst=1)), LimitState()
    state, _ = take(limit, state, AT)
    state, _ = take(limit, state, AT)

    state, newcomer = ask_limit(limit, state, cost=1, now_at=AT + SECOND)
    state, on_turn = ask_limit(limit, state, cost=1, now_at=AT + SECOND, has_turn=True)

    assert LimitTurn(AT + 2 * SECOND, "1 a second, 1 at once") == newcomer
    assert Room(AT + SECOND) == on_turn


def test_late_comers_do_not_begin_all_at_once() -> None:
    """Everybody who waited was away for an hour: the limit holds all the same, and they are lined up again."""
    limit, state = RateLimit("api", TokenBucket(1, burst=2)), LimitState()
    for _ in range(12):
        state, _ = take(limit, state, AT)

    back_at = AT + 3600 * SECOND
    answers = []
    for _ in range(10):
        state, answer = ask_limit(limit, state, cost=1, now_at=back_at, has_turn=True)
        answers.append(answer)

    assert [Room(back_at)] * 2 == answers[:2]
    turns = [answer.at - back_at for answer in answers[2:]]
    assert sorted(turns) == turns
    assert turns[-1] >= 6 * SECOND


def test_a_turn_that_is_given_back_is_given_to_the_next() -> None:
    """Who is cancelled does not keep those behind waiting."""
    limit, state = RateLimit("api", TokenBucket(1, burst=1), FixedWindow(100, 100)), LimitState()
    for _ in range(4):
        state, _ = take(limit, state, AT)
    for _ in range(3):
        state = give_back(limit, state, cost=1)

    _, answer = ask_limit(limit, state, cost=1, now_at=AT)

    assert AT + SECOND == answer.at


def test_turns_that_are_given_back_empty_one_window_after_the_other() -> None:
    """Two in each window; five of six who were lined up give up."""
    limit, state = RateLimit("api", FixedWindow(2, 10)), LimitState()
    for _ in range(8):
        state, _ = take(limit, state, AT)
    for _ in range(5):
        state = give_back(limit, state, cost=1)

    turns = []
    for _ in range(3):
        state, answer = ask_limit(limit, state, cost=1, now_at=AT)
        turns.append((answer.at - AT) // SECOND)

    assert [10, 20, 20] == turns


def test_a_limit_with_another_tier_than_before_begins_that_tier_empty() -> None:
    """A tier that a limit did not have before begins empty."""
    state, _ = take(RateLimit("api", FixedWindow(1, 10)), LimitState(), AT)

    _, answer = take(RateLimit("api", FixedWindow(2, 10)), state, AT)

    assert AT == answer


# -- For any asking ----------------------------------------------------------------------------------------------------

TIERS = st.one_of(
    st.builds(TokenBucket, st.sampled_from([0.5, 1, 3, 7, 1000]), st.integers(3, 8)),
    st.builds(FixedWindow, st.integers(3, 8), st.sampled_from([1, 2.5, 10])),
    st.builds(SlidingWindow, st.integers(3, 8), st.sampled_from([1, 2.5, 10])),
)


class Asks(NamedTuple):
    """A caller comes `later` microseconds after the one before."""

    later: int
    cost: int
    wait_max: int
    back: int
    """Which of the waiters comes instead, if there is one."""


ASKS = st.builds(
    Asks,
    st.one_of(st.integers(0, 400_000), st.integers(0, 20 * SECOND)),
    st.integers(0, 3),
    st.sampled_from([0, 300_000, 2 * SECOND]),
    st.integers(0, 20),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(TIERS, min_size=1, max_size=3, unique_by=lambda tier: tier.label), st.lists(ASKS, max_size=60))
def test_never_more_begin_than_all_tiers_allow(tiers: list[Tier], asks: list[Asks]) -> None:
    """In no window and in no stretch of time; newcomers, waiters on their turn, too early or an hour late alike."""
    limit, state, now_at = RateLimit("any", *tiers), LimitState(), AT
    began: list[Began] = []
    waiting: list[int] = []
    for ask in asks:
        now_at += ask.later
        has_turn = ask.back < len(waiting)
        cost = waiting.pop(ask.back) if has_turn else ask.cost
        state, answer = ask_limit(limit, state, cost=cost, now_at=now_at, wait_max=ask.wait_max, has_turn=has_turn)
        assert answer.at >= now_at
        if isinstance(answer, Room):
            assert answer.at <= now_at + ask.wait_max
            began.append(Began(answer.at, cost))
        else:
            assert answer.at > now_at + ask.wait_max
            waiting.append(cost)

    for tier in tiers:
        check(tier, sorted(began))


def check(tier: Tier, began: list[Began]) -> None:
    """What a tier allows, said in another way than it is computed."""
    if isinstance(tier, FixedWindow):
        width = round(tier.seconds * SECOND)
        windows: dict[int, int] = {}
        for call in began:
            windows[call.at // width] = windows.get(call.at // width, 0) + call.cost
        assert max(windows.values(), default=0) <= tier.limit
    elif isinstance(tier, SlidingWindow):
        for start in began:
            within = [call.cost for call in began if 0 <= call.at - start.at < tier.seconds * SECOND]
            assert sum(within) <= tier.limit
    else:
        assert isinstance(tier, TokenBucket)
        for first in range(len(began)):
            spent = 0
            for call in began[first:]:
                spent += call.cost
                assert spent <= tier.burst + tier.rate * (call.at - began[first].at) / SECOND + 1e-6


@settings(max_examples=200, deadline=None)
@given(st.lists(TIERS, min_size=1, max_size=3, unique_by=lambda tier: tier.label), st.lists(st.integers(1, 3)))
def test_an_attempt_that_comes_back_at_its_turn_finds_room(tiers: list[Tier], costs: list[int]) -> None:
    """When all are on time: the plan is one that can be kept."""
    limit, state = RateLimit("any", *tiers), LimitState()
    turns: list[tuple[int, int]] = []
    for cost in costs:
        state, answer = ask_limit(limit, state, cost=cost, now_at=AT)
        if isinstance(answer, LimitTurn):
            turns.append((answer.at, cost))

    for turn_at, cost in turns:
        state, answer = ask_limit(limit, state, cost=cost, now_at=turn_at, has_turn=True)
        assert Room(turn_at) == answer


WRONG: dict[str, Callable[[], object]] = {
    "no rate": lambda: TokenBucket(0),
    "a negative burst": lambda: TokenBucket(1, burst=-1),
    "nothing in a window": lambda: FixedWindow(0, 60),
    "a window without time": lambda: FixedWindow(1, 0),
    "nothing in a sliding window": lambda: SlidingWindow(0, 60),
    "a sliding window without time": lambda: SlidingWindow(1, 0),
    "a window without end": lambda: FixedWindow(1, math.inf),
    "half a call in a window": lambda: FixedWindow(1.5, 60),  # type: ignore[arg-type]
    "half a token at once": lambda: TokenBucket(1, burst=1.5),  # type: ignore[arg-type]
    "a token in a thousand years": lambda: TokenBucket(1e-11),
    "no tier": lambda: RateLimit("api"),
    "no name": lambda: RateLimit("", TokenBucket(1)),
    "too long a name": lambda: RateLimit("x" * 201, TokenBucket(1)),
    "the same tier twice": lambda: RateLimit("api", TokenBucket(1), TokenBucket(1)),
    "an unknown option": lambda: RateLimit("api", TokenBucket(1), when_full="drop"),  # type: ignore[arg-type]
    "a cost that never fits": lambda: check_cost(RateLimit("api", TokenBucket(1)), 2),
    "a negative cost": lambda: check_cost(RateLimit("api", TokenBucket(1)), -1),
    "half a call": lambda: check_cost(RateLimit("api", TokenBucket(5)), 0.5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_limit_is_refused(wrong: str) -> None:
    """A limit that cannot work is refused when it is made."""
    with pytest.raises(ConfigurationError):
        WRONG[wrong]()


def test_a_bucket_without_a_burst_holds_a_second() -> None:
    """Rounded up, so that it holds something."""
    assert [1, 3, 10] == [TokenBucket(rate).burst for rate in (0.2, 2.5, 10)]


@given(
    st.lists(st.tuples(st.integers(0, 30 * SECOND), st.integers(1, 3), st.booleans()), min_size=1, max_size=12),
    st.integers(0, 40 * SECOND),
    st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_a_state_that_can_be_forgotten_answers_as_an_empty_one(
    calls: list[tuple[int, int, bool]], later: int, cost: int
) -> None:
    """From the instant on that it names; so its cell can be removed, and no call more is let through."""
    tiers = TokenBucket(1, burst=3), FixedWindow(4, seconds=10), SlidingWindow(4, seconds=7)
    limit, state = RateLimit("api", *tiers), LimitState()
    for at, spent, may_wait in sorted(calls):
        state, _ = ask_limit(limit, state, cost=spent, now_at=AT + at, wait_max=5 * SECOND * may_wait)
    known = dated(limit, state)
    now_at = max(known.forgotten_at, AT + later)

    assert known.forgotten_at > AT
    assert (
        ask_limit(limit, known, cost=cost, now_at=now_at)[1]
        == ask_limit(limit, LimitState(), cost=cost, now_at=now_at)[1]
    )
