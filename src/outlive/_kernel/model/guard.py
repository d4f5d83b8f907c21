"""The guard of a step: a breaker, a rate limit, or both, asked before each call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from outlive._kernel.model import given
from outlive._kernel.model.breaker import Breaker
from outlive._kernel.model.limit import RateLimit, check_cost
from outlive.errors import ConfigurationError, DefinitionError

Cost = int | Callable[..., int]
"""The cost of a call: a number, or a plain function of the arguments of the step."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Asked before every attempt."""

    breaker: Breaker | None = None
    limit: RateLimit | None = None
    cost: Cost = 1

    def cost_of(self, args: list[Any], kwargs: dict[str, Any]) -> int:
        """The cost of a call with these arguments.

        Raises:
            ConfigurationError: it is more than can ever fit.
        """
        if self.limit is None:
            return 0
        return check_cost(self.limit, self.cost(*args, **kwargs) if callable(self.cost) else self.cost)


def guard_of(what: str, breaker: Breaker | None, limit: RateLimit | None, cost: Cost | None) -> Guard | None:
    """A guard, if there is anything to ask.

    Raises:
        DefinitionError: this cannot be one.
    """
    if breaker is not None:
        given.instance(what, "breaker", breaker, Breaker, like='outlive.limits.Breaker("bank")')
    if limit is not None:
        given.instance(
            what, "limit", limit, RateLimit, like='outlive.limits.RateLimit("bank", outlive.limits.TokenBucket(10))'
        )
    if limit is None:
        if cost is not None:
            raise DefinitionError(
                f"{what}: cost={cost!r} costs nothing without limit=; give limit= too, or leave cost= out"
            )
        return None if breaker is None else Guard(breaker)
    if cost is not None and not callable(cost):
        given.whole(what, "cost", cost, least=0)
        try:
            check_cost(limit, cost)
        except ConfigurationError as error:
            raise DefinitionError(f"{what}: {error}") from error
    return Guard(breaker, limit, 1 if cost is None else cost)
