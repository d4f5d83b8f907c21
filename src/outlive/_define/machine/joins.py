"""When a split is over: how many of its branches must have succeeded, and where it goes then."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field

from outlive._model import given


@dataclass(frozen=True, slots=True)
class Join:
    """The condition of a split. When it is met, the other branches are cancelled."""

    then: enum.Enum | None = field(default=None, kw_only=True)

    def wanted(self, branches: int) -> int:
        """How many branches must succeed."""
        return branches

    def settles_for(self, succeeded: int) -> bool:
        """Whether it goes on with this many when no more can come."""
        return False

    def problems(self, branches: int, timeout: float | None) -> list[str]:
        """The problems of this join."""
        wrong = [] if self.then is not None else [f"its join {self} has no then="]
        # A list of branches may be empty: there is nothing to wait for, unless the join wants a number of them.
        is_possible = min(1, branches) <= self.wanted(branches) <= branches
        return wrong if is_possible else [*wrong, f"{branches} branches can never be {self}"]

    def __str__(self) -> str:
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class All(Join):
    """Every branch must succeed; the first that fails fails the split."""


@dataclass(frozen=True, slots=True)
class Any(Join):
    """The first branch that succeeds is enough."""

    def wanted(self, branches: int) -> int:
        """See `Join`."""
        return 1


@dataclass(frozen=True, slots=True)
class Quorum(Join):
    """So many branches must succeed."""

    count: int

    def __post_init__(self) -> None:
        given.keep(self, count=given.whole(type(self).__name__, "count", self.count))

    def wanted(self, branches: int) -> int:
        """See `Join`."""
        return self.count

    def __str__(self) -> str:
        return f"Quorum({self.count})"


@dataclass(frozen=True, slots=True)
class Percentage(Join):
    """This share of the branches must succeed, from 0 to 1, rounded up: `Percentage(0.5)` of 3 is 2."""

    share: float

    def __post_init__(self) -> None:
        given.keep(self, share=given.number("Percentage", "share", self.share, least=0, most=1, like=0.5))

    def wanted(self, branches: int) -> int:
        """See `Join`."""
        # A tenth of a millionth less: 0.07 * 100 is 7.000000000000001, and that does not mean 8.
        return math.ceil(self.share * branches - 1e-7)

    def problems(self, branches: int, timeout: float | None) -> list[str]:
        """See `Join`."""
        if not 0 < self.share <= 1:
            return [f"{self}: give a share above 0, and 1 at most"]
        return Join.problems(self, branches, timeout)

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

    def settles_for(self, succeeded: int) -> bool:
        """See `Join`."""
        return succeeded > 0

    def problems(self, branches: int, timeout: float | None) -> list[str]:
        """See `Join`."""
        wrong = Join.problems(self, branches, timeout)
        return wrong if timeout is not None else [*wrong, "PartialTimeout needs the timeout= of the split"]
