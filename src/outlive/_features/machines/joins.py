"""When a split is over: how many of its branches must have succeeded, and where it goes then."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field

from outlive._kernel.model import given


@dataclass(frozen=True, slots=True)
class Join:
    """The condition of a split. When it is met, the other branches are cancelled."""

    then: enum.Enum | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class All(Join):
    """Every branch must succeed; the first that fails fails the split."""


@dataclass(frozen=True, slots=True)
class Any(Join):
    """The first branch that succeeds is enough."""


@dataclass(frozen=True, slots=True)
class Quorum(Join):
    """So many branches must succeed."""

    count: int

    def __post_init__(self) -> None:
        given.keep(self, count=given.whole(type(self).__name__, "count", self.count))

    def __str__(self) -> str:
        return f"Quorum({self.count})"


@dataclass(frozen=True, slots=True)
class Percentage(Join):
    """This share of the branches must succeed, from 0 to 1, rounded up: `Percentage(0.5)` of 3 is 2."""

    share: float

    def __post_init__(self) -> None:
        given.keep(self, share=given.number("Percentage", "share", self.share, least=0, most=1, like=0.5))

    def __str__(self) -> str:
        return f"Percentage({self.share:g})"


@dataclass(frozen=True, slots=True)
class PartialResults(Quorum):
    """The first `count` results: a `Quorum` by the name that says that the others are not wanted."""

    def __str__(self) -> str:
        return f"PartialResults({self.count})"


@dataclass(frozen=True, slots=True)
class PartialTimeout(Join):
    """Whatever has succeeded when the `timeout` of the split is over, as long as that is something."""


def wanted(join: Join, branches: int) -> int:
    """How many branches must succeed."""
    match join:
        case Any():
            return 1
        case Quorum():
            return join.count
        case Percentage():
            # A tenth of a millionth less: 0.07 * 100 is 7.000000000000001, and that does not mean 8.
            return math.ceil(join.share * branches - 1e-7)
        case _:
            return branches


def settles_for(join: Join, succeeded: int) -> bool:
    """Whether a split goes on with this many when no more can come."""
    return isinstance(join, PartialTimeout) and succeeded > 0


def join_problems(join: Join, branches: int, timeout: float | None) -> list[str]:
    """The problems of a join."""
    if isinstance(join, Percentage) and not 0 < join.share <= 1:
        return [f"{join}: give a share above 0, and 1 at most"]
    wrong = [] if join.then is not None else [f"its join {join} has no then="]
    # A list of branches may be empty: there is nothing to wait for, unless the join wants a number of them.
    if not min(1, branches) <= wanted(join, branches) <= branches:
        wrong.append(f"{branches} branches can never be {join}")
    if isinstance(join, PartialTimeout) and timeout is None:
        wrong.append("PartialTimeout needs the timeout= of the split")
    return wrong
