"""Rate limits: how often a step may be called, as pure arithmetic on small states.

A limit has tiers, and a call must fit into all of them at the same instant. Either every tier is charged or none is:
nothing has to be given back. A tier is a bucket or a window, and knows two things: the earliest instant at which a
call of some cost fits (`earliest`), and what it looks like when that call was let through (`charge`).

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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import msgspec

from outlive._model import given
from outlive._model.given import SECONDS_MAX
from outlive.errors import ArgumentTypeError, ConfigurationError

_MICROSECONDS = 1_000_000
_NANOSECONDS = 1_000_000_000
_FINE = _NANOSECONDS // _MICROSECONDS

CALLS_MAX = 1_000_000_000
"""The most calls that a tier lets through at once, or in one window."""
LIMIT_CELLS = "limit/"
"""The prefix of the names of cells with shared limits."""
Level = tuple[int, int]
"""The state of a tier: for a bucket the nanosecond at which it is full again; for a window its beginning, and what was
spent in it."""
EMPTY: Level = (0, 0)


class Tier(Protocol):
    """One of the things that a limit limits."""

    @property
    def label(self) -> str:
        """The name of the tier for people, errors and stored states."""

    @property
    def capacity(self) -> int:
        """The largest cost that can ever fit."""

    def earliest(self, level: Level, cost: int, now_at: int) -> int:
        """The first instant from now on at which this fits."""

    def charge(self, level: Level, cost: int, at: int) -> Level:
        """The level after a call of this cost was let through at `at`, when it fits."""

    def refund(self, level: Level, cost: int) -> Level:
        """The level after the cost of a call that was not made has been given back."""


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
        """See `Tier`."""
        return f"{self.rate:g} a second, {self.burst} at once"

    @property
    def capacity(self) -> int:
        """See `Tier`."""
        return self.burst

    @property
    def _token(self) -> int:
        """Nanoseconds that a token takes to come: rounded up, so that there are never too many."""
        return math.ceil(_NANOSECONDS / self.rate)

    def earliest(self, level: Level, cost: int, now_at: int) -> int:
        """See `Tier`."""
        fits_at = level[0] + (cost - self.burst) * self._token
        return max(now_at, -(-fits_at // _FINE))

    def charge(self, level: Level, cost: int, at: int) -> Level:
        """See `Tier`."""
        return max(level[0], at * _FINE) + cost * self._token, 0

    def refund(self, level: Level, cost: int) -> Level:
        """See `Tier`."""
        return level[0] - cost * self._token, 0

    def forgotten_at(self, level: Level) -> int:
        """The instant from which on it is full, and so as if it had never been used."""
        return -(-level[0] // _FINE)


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
        """See `Tier`."""
        return f"{self.limit} in {self.seconds:g} s"

    @property
    def capacity(self) -> int:
        """See `Tier`."""
        return self.limit

    def _begin(self, at: int) -> int:
        return at - at % round(self.seconds * _MICROSECONDS)

    def earliest(self, level: Level, cost: int, now_at: int) -> int:
        """See `Tier`."""
        began_at, spent = level
        # A call may have been let through for a later window: no call overtakes it.
        window_at = max(self._begin(now_at), began_at)
        if window_at > began_at or spent + cost <= self.limit:
            return max(now_at, window_at)
        return window_at + round(self.seconds * _MICROSECONDS)

    def charge(self, level: Level, cost: int, at: int) -> Level:
        """See `Tier`."""
        began_at, spent = level
        window_at = self._begin(at)
        return window_at, cost + (spent if window_at == began_at else 0)

    def refund(self, level: Level, cost: int) -> Level:
        """See `Tier`. A call that has room in a window had found those before it full."""
        windows, spent = divmod(level[1] - cost, self.limit)
        return level[0] + windows * round(self.seconds * _MICROSECONDS), spent

    def forgotten_at(self, level: Level) -> int:
        """The instant from which on its window is over, and so as if it had never been used."""
        return level[0] + round(self.seconds * _MICROSECONDS)


class LimitState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a limit, by the labels of its tiers: a tier that was changed begins empty."""

    spent: dict[str, Level] = {}
    lined_up: dict[str, Level] = {}
    forgotten_at: int = 0
    """The instant from which on it says no more than an empty one. 0: that is not known."""


def is_forgotten(data: bytes, now_at: int) -> bool:
    """Whether the cell of a limit says no more than an empty one; what cannot be read may say something."""
    try:
        return 0 < msgspec.json.decode(data, type=LimitState).forgotten_at <= now_at
    except msgspec.MsgspecError:
        return False


class Room(NamedTuple):
    """A call fits, at once or in a moment."""

    at: int
    """It must not begin before."""


class Turn(NamedTuple):
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
            raise ConfigurationError(f"{where} limits nothing: give it a TokenBucket or a FixedWindow")
        for tier in tiers:
            if not all(hasattr(tier, name) for name in ("label", "capacity", "earliest", "charge", "refund")):
                wanted = "give TokenBucket or FixedWindow objects, for example TokenBucket(rate=10)"
                raise ArgumentTypeError(where, "tiers", tier, wanted)
        if len({tier.label for tier in tiers}) < len(tiers):
            raise ConfigurationError(f"{where} has the same tier twice; leave one of them out")

    def check_cost(self, cost: int) -> int:
        """Give a cost back if a call can have it.

        Raises:
            ConfigurationError: it is not a number, or more than can ever fit.
        """
        cost = given.whole(f"rate limit {self.name}", "cost", cost, least=0)
        for tier in self.tiers:
            if cost > tier.capacity:
                raise ConfigurationError(
                    f"rate limit {self.name}: a call that costs {cost} never fits into its tier of {tier.label}; "
                    f"make the call smaller or the tier larger"
                )
        return cost

    def ask(
        self, state: LimitState, *, cost: int, now_at: int, wait_max: int = 0, has_turn: bool = False
    ) -> tuple[LimitState, Room | Turn]:
        """Let a call through within `wait_max` microseconds, or say when it is its turn and line it up.

        `has_turn` is for a call that was lined up and comes back.
        """
        at, tier = self._latest(state.spent, cost, now_at)
        if not has_turn or at > now_at + wait_max:
            planned_at, planned_tier = self._latest(state.lined_up, cost, now_at)
            at, tier = (planned_at, planned_tier) if planned_at > at else (at, tier)
        lined_up = self._charged(state.lined_up, cost, at)
        if at > now_at + wait_max:
            return LimitState(state.spent, lined_up), Turn(at, tier)
        # A call that comes back is in the plan already.
        return LimitState(self._charged(state.spent, cost, at), state.lined_up if has_turn else lined_up), Room(at)

    def try_now(self, state: LimitState, *, cost: int, now_at: int) -> tuple[LimitState, Room | Turn]:
        """Let a call through at once, or say when that could be; it does not line up."""
        after, answer = self.ask(state, cost=cost, now_at=now_at)
        return (after if isinstance(answer, Room) else state), answer

    def give_back(self, state: LimitState, *, cost: int) -> LimitState:
        """A call that was lined up does not come."""
        lined_up = {
            tier.label: tier.refund(state.lined_up[tier.label], cost)
            for tier in self.tiers
            if tier.label in state.lined_up
        }
        return LimitState(state.spent, lined_up)

    def dated(self, state: LimitState) -> LimitState:
        """The state with the instant from which on it can be forgotten, which only tiers of our own know."""
        known: list[int] = []
        for tier in self.tiers:
            if not isinstance(tier, TokenBucket | FixedWindow):
                return state
            known += [
                tier.forgotten_at(book[tier.label]) for book in (state.spent, state.lined_up) if tier.label in book
            ]
        return LimitState(state.spent, state.lined_up, max(known, default=0))

    def earliest(self, state: LimitState, cost: int, now_at: int) -> int:
        """The first instant from now on at which this fits, whatever is lined up."""
        return self._latest(state.spent, cost, now_at)[0]

    def charge(self, state: LimitState, cost: int, now_at: int) -> LimitState:
        """The state after a call of this cost was let through now."""
        return LimitState(self._charged(state.spent, cost, now_at), state.lined_up)

    def _latest(self, levels: dict[str, Level], cost: int, now_at: int) -> tuple[int, str]:
        """When all tiers have room, and which of them is the last."""
        return max(
            ((tier.earliest(levels.get(tier.label, EMPTY), cost, now_at), tier.label) for tier in self.tiers),
            key=lambda found: found[0],
        )

    def _charged(self, levels: dict[str, Level], cost: int, at: int) -> dict[str, Level]:
        tiers: Sequence[Tier] = self.tiers
        return {tier.label: tier.charge(levels.get(tier.label, EMPTY), cost, at) for tier in tiers}
