"""Rate limits: how often a step may be called, as pure arithmetic on small states.

A limit has tiers, and a call must fit into all of them at the same instant. Either every tier is charged or none is:
nothing has to be given back. A tier is a bucket, a fixed window or a sliding one, and knows two things: the earliest
instant at which a call of some cost fits (`fits_at`), and what it looks like when that call was let through (`charge`).
No call overtakes an earlier one that was booked for a later instant.

Two books
---------
*Spent* is the truth: what was let through, at which instant. No call begins that is not booked there, so there are
never more calls than the tiers allow, whatever crashes.

*Lined up* is a plan: a call that has to wait long is booked there at the instant of its turn, and so each of a thousand
waiting calls comes back at an instant of its own and not all of them at the next free one. A call that comes back on
its turn must fit into the first book only; a new one must fit into both, and so does not push in. The plan is not to be
trusted (waiting calls die, and come late): one that finds no room on its turn is lined up again.

A wait of up to `wait_max` is a reservation: the call is booked as spent at that later instant and must not begin
before it.

All instants are microseconds since 1970 UTC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

import msgspec

from outlive._kernel.model import given
from outlive._kernel.model.given import SECONDS_MAX
from outlive._kernel.model.instant import MICROSECONDS
from outlive.errors import ArgumentTypeError, ConfigurationError

_NANOSECONDS = 1_000_000_000
_FINE = _NANOSECONDS // MICROSECONDS

CALLS_MAX = 1_000_000_000
"""The most calls that a tier lets through at once, or in one window."""
LIMIT_CELLS = "limit/"
"""The prefix of the names of cells with shared limits."""
BEGINS_MAX = 100
"""The most instants that a sliding window remembers. One that allows more calls counts calls that began within a
hundredth of its length as one group, which began when the last of them did."""
TierLevel = tuple[int, ...]
"""The state of a tier: for a bucket the nanosecond at which it is full again; for a fixed window its beginning, and
what was spent in it; for a sliding window the instants at which calls began, oldest first, each with their cost."""
EMPTY: TierLevel = (0, 0)


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """`rate` calls a second in the long run, and `burst` at once: a bucket of `burst` tokens, refilled at `rate`.

    Args:
        rate: tokens a second; may be less than one.
        burst: how many tokens the bucket holds; the rate rounded up unless given.
    """

    rate: float
    burst: int = 0

    def __post_init__(self) -> None:
        rate = given.number(
            "TokenBucket", "rate", self.rate, least=1 / SECONDS_MAX, most=_NANOSECONDS, what="tokens a second", like=10
        )
        given.keep(self, rate=rate, burst=given.whole("TokenBucket", "burst", self.burst, least=0, most=CALLS_MAX))
        if not self.burst:
            object.__setattr__(self, "burst", math.ceil(self.rate))

    @property
    def label(self) -> str:
        """The name of the tier for people, errors and stored states."""
        return f"{self.rate:g} a second, {self.burst} at once"

    @property
    def capacity(self) -> int:
        """The largest cost that can ever fit."""
        return self.burst

    @property
    def _token(self) -> int:
        """Nanoseconds that a token takes to come: rounded up, so that there are never too many."""
        return math.ceil(_NANOSECONDS / self.rate)


@dataclass(frozen=True, slots=True)
class FixedWindow:
    """`limit` calls in each window of `seconds`; a window of 60 seconds begins with every minute (UTC).

    Args:
        limit: calls in one window.
        seconds: how long a window is.
    """

    limit: int
    seconds: float

    def __post_init__(self) -> None:
        given.keep(
            self,
            limit=given.whole("FixedWindow", "limit", self.limit, most=CALLS_MAX),
            seconds=given.seconds("FixedWindow", "seconds", self.seconds),
        )

    @property
    def label(self) -> str:
        """The name of the tier for people, errors and stored states."""
        return f"{self.limit} in {self.seconds:g} s"

    @property
    def capacity(self) -> int:
        """The largest cost that can ever fit."""
        return self.limit

    @property
    def _width(self) -> int:
        return round(self.seconds * MICROSECONDS)

    def _begin(self, at: int) -> int:
        return at - at % self._width


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """At most `limit` calls in any period of `seconds`, wherever it begins.

    A call finds room `seconds` after the call whose place it takes. Above a limit of 100 that may be later, by up to a
    hundredth of `seconds`: at most 100 instants are stored.

    Args:
        limit: calls in one period.
        seconds: how long the period is.
    """

    limit: int
    seconds: float

    def __post_init__(self) -> None:
        given.keep(
            self,
            limit=given.whole("SlidingWindow", "limit", self.limit, most=CALLS_MAX),
            seconds=given.seconds("SlidingWindow", "seconds", self.seconds),
        )

    @property
    def label(self) -> str:
        """The name of the tier for people, errors and stored states."""
        return f"{self.limit} in any {self.seconds:g} s"

    @property
    def capacity(self) -> int:
        """The largest cost that can ever fit."""
        return self.limit

    @property
    def _width(self) -> int:
        return round(self.seconds * MICROSECONDS)

    def _group(self, at: int) -> int:
        """Calls of one group share a place in the state; with a small limit a group is one instant."""
        return at if self.limit <= BEGINS_MAX else at // -(-self._width // BEGINS_MAX)

    def _fits_at(self, begins: list[_Begin], cost: int, now_at: int) -> int:
        at, spent = max(now_at, begins[-1][0]), sum(part for _, part in begins)
        for began_at, part in begins:
            if began_at + self._width > at:
                if spent + cost <= self.limit:
                    break
                at = began_at + self._width
            spent -= part
        return at

    def _after(self, begins: list[_Begin], cost: int, at: int) -> list[_Begin]:
        """The begins that still count after one more; no later call is let through before it."""
        last_at, part = begins[-1]
        at = max(at, last_at)
        left = [begin for begin in begins if begin[0] + self._width > at]
        if left and self._group(last_at) == self._group(at):
            return [*left[:-1], (at, part + cost)]
        return [*left, (at, cost)]

    def _without(self, begins: list[_Begin], cost: int) -> list[_Begin]:
        """The begins without the last ones, of this cost. Calls that had to wait found the period before them full:
        each of its begins, which are forgotten, was a period earlier."""
        left, before = list(begins), list[_Begin]()
        while cost and left:
            at, part = left.pop()
            taken = min(cost, part)
            before.insert(0, (at - self._width, taken))
            if part > taken:
                left.append((at, part - taken))
            cost -= taken
        if left and before and left[0][0] == before[-1][0]:
            at, part = before.pop()
            left[0] = at, part + left[0][1]
        return [*before, *left]


_Begin = tuple[int, int]
"""An instant at which calls began, and their cost."""
Tier = TokenBucket | FixedWindow | SlidingWindow
"""One of the things that a limit limits."""


def _begins(level: TierLevel) -> list[_Begin]:
    return list(zip(level[::2], level[1::2], strict=True))


def _level(begins: list[_Begin]) -> TierLevel:
    return tuple(chain.from_iterable(begins))


def fits_at(tier: Tier, level: TierLevel, cost: int, now_at: int) -> int:
    """The first instant from now on at which this fits."""
    match tier:
        case TokenBucket():
            return max(now_at, -(-(level[0] + (cost - tier.burst) * tier._token) // _FINE))
        case FixedWindow():
            began_at, spent = level
            # A call may have been let through for a later window: no call overtakes it.
            window_at = max(tier._begin(now_at), began_at)
            if window_at > began_at or spent + cost <= tier.limit:
                return max(now_at, window_at)
            return window_at + tier._width
        case SlidingWindow():
            return tier._fits_at(_begins(level), cost, now_at)


def charge(tier: Tier, level: TierLevel, cost: int, at: int) -> TierLevel:
    """The level after a call of this cost was let through at `at`, when it fits."""
    match tier:
        case TokenBucket():
            return max(level[0], at * _FINE) + cost * tier._token, 0
        case FixedWindow():
            began_at, spent = level
            window_at = tier._begin(at)
            return window_at, cost + (spent if window_at == began_at else 0)
        case SlidingWindow():
            return _level(tier._after(_begins(level), cost, at)) if cost else level


def _refund(tier: Tier, level: TierLevel, cost: int) -> TierLevel:
    """The level after the cost of a call that was not made has been given back."""
    match tier:
        case TokenBucket():
            return level[0] - cost * tier._token, 0
        case FixedWindow():
            # A call that has room in a window had found the windows before it full.
            windows, spent = divmod(level[1] - cost, tier.limit)
            return level[0] + windows * tier._width, spent
        case SlidingWindow():
            return _level(tier._without(_begins(level), cost))


def _forgotten_at(tier: Tier, level: TierLevel) -> int:
    """The instant from which on a tier is as if it had never been used: its bucket is full, or its window is over."""
    match tier:
        case TokenBucket():
            return -(-level[0] // _FINE)
        case FixedWindow():
            return level[0] + tier._width
        case SlidingWindow():
            return level[-2] + tier._width


class LimitState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a limit, by the labels of its tiers: a tier that was changed begins empty."""

    spent: dict[str, TierLevel] = {}
    lined_up: dict[str, TierLevel] = {}
    forgotten_at: int = 0
    """The instant from which on it says no more than an empty one. 0: that is not known."""

    def __post_init__(self) -> None:
        """Refuse a stored state that no tier has written."""
        for book in (self.spent, self.lined_up):
            for level in book.values():
                if not level or len(level) % 2:
                    raise ValueError("a level has pairs of numbers")


def left_of_limit(data: bytes, now_at: int) -> bytes | None:
    """The cell of a limit, unless it says no more than an empty one; a cell that cannot be read may say something."""
    try:
        return None if 0 < msgspec.json.decode(data, type=LimitState).forgotten_at <= now_at else data
    except msgspec.MsgspecError:
        return data


class Room(NamedTuple):
    """A call fits, at once or in a moment."""

    at: int
    """It must not begin before."""


class LimitTurn(NamedTuple):
    """A call has to wait."""

    at: int
    """When it is its turn, or would be."""
    tier: str
    """The label of the tier that has no room."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """How often the steps that have it may be called, all together.

    Args:
        name: steps with limits of the same name share one.
        tiers: all of them hold at once.
        shared: whether all workers of a store share it, or each engine counts for itself.
        when_full: whether a step waits for its turn, durably, or fails with `RateLimitedError`.
    """

    name: str
    tiers: tuple[Tier, ...]
    shared: bool
    when_full: Literal["wait", "fail"]

    def __init__(
        self, name: str, *tiers: Tier, shared: bool = False, when_full: Literal["wait", "fail"] = "wait"
    ) -> None:
        where = f"RateLimit({name!r})"
        given.keep(
            self,
            name=given.text("RateLimit", "name", name, like="bank"),
            tiers=tiers,
            shared=given.flag(where, "shared", shared),
            when_full=given.one_of(where, "when_full", when_full, ("wait", "fail")),
        )
        if not tiers:
            raise ConfigurationError(f"{where} limits nothing: give it a TokenBucket, a FixedWindow or a SlidingWindow")
        objects: tuple[object, ...] = tiers
        if others := [each for each in objects if not isinstance(each, Tier)]:
            wanted = "give TokenBucket, FixedWindow or SlidingWindow objects, for example TokenBucket(rate=10)"
            raise ArgumentTypeError(where, "tiers", others[0], wanted)
        if len({tier.label for tier in tiers}) < len(tiers):
            raise ConfigurationError(f"{where} has the same tier twice; leave one of them out")


def check_cost(limit: RateLimit, cost: int) -> int:
    """Give a cost back if a call can have it.

    Raises:
        ConfigurationError: it is not a number, or more than can ever fit.
    """
    cost = given.whole(f"rate limit {limit.name}", "cost", cost, least=0)
    for tier in limit.tiers:
        if cost > tier.capacity:
            raise ConfigurationError(
                f"rate limit {limit.name}: a call that costs {cost} never fits into its tier of {tier.label}; "
                f"make the call smaller or the tier larger"
            )
    return cost


def ask_limit(
    limit: RateLimit, state: LimitState, *, cost: int, now_at: int, wait_max: int = 0, has_turn: bool = False
) -> tuple[LimitState, Room | LimitTurn]:
    """Let a call through within `wait_max` microseconds, or say when it is its turn and line it up.

    `has_turn` is for a call that was lined up and comes back.
    """
    at, tier = _latest(limit, state.spent, cost, now_at)
    if not has_turn or at > now_at + wait_max:
        planned_at, planned_tier = _latest(limit, state.lined_up, cost, now_at)
        at, tier = (planned_at, planned_tier) if planned_at > at else (at, tier)
    lined_up = _charged(limit, state.lined_up, cost, at)
    if at > now_at + wait_max:
        return LimitState(state.spent, lined_up), LimitTurn(at, tier)
    # A call that comes back is in the plan already.
    return LimitState(_charged(limit, state.spent, cost, at), state.lined_up if has_turn else lined_up), Room(at)


def try_limit(limit: RateLimit, state: LimitState, *, cost: int, now_at: int) -> tuple[LimitState, Room | LimitTurn]:
    """Let a call through at once, or say when that could be; it does not line up."""
    after, answer = ask_limit(limit, state, cost=cost, now_at=now_at)
    return (after if isinstance(answer, Room) else state), answer


def give_back(limit: RateLimit, state: LimitState, *, cost: int) -> LimitState:
    """A call that was lined up does not come."""
    lined_up = {
        tier.label: _refund(tier, state.lined_up[tier.label], cost)
        for tier in limit.tiers
        if tier.label in state.lined_up
    }
    return LimitState(state.spent, lined_up)


def dated(limit: RateLimit, state: LimitState) -> LimitState:
    """The state with the instant from which on it can be forgotten."""
    books = (state.spent, state.lined_up)
    known = [_forgotten_at(tier, book[tier.label]) for tier in limit.tiers for book in books if tier.label in book]
    return LimitState(state.spent, state.lined_up, max(known, default=0))


def limit_fits_at(limit: RateLimit, state: LimitState, cost: int, now_at: int) -> int:
    """The first instant from now on at which this fits, whatever is lined up."""
    return _latest(limit, state.spent, cost, now_at)[0]


def charge_limit(limit: RateLimit, state: LimitState, cost: int, now_at: int) -> LimitState:
    """The state after a call of this cost was let through now."""
    return LimitState(_charged(limit, state.spent, cost, now_at), state.lined_up)


def _latest(limit: RateLimit, levels: dict[str, TierLevel], cost: int, now_at: int) -> tuple[int, str]:
    """When all tiers have room, and which of them is the last."""
    return max(
        ((fits_at(tier, levels.get(tier.label, EMPTY), cost, now_at), tier.label) for tier in limit.tiers),
        key=lambda found: found[0],
    )


def _charged(limit: RateLimit, levels: dict[str, TierLevel], cost: int, at: int) -> dict[str, TierLevel]:
    return {tier.label: charge(tier, levels.get(tier.label, EMPTY), cost, at) for tier in limit.tiers}
