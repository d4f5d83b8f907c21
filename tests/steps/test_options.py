"""Options of one call of a step: what is given takes the place of what the step has, and the rest stays."""

from __future__ import annotations

from typing import Any

import pytest

import outlive
from outlive.limits import Breaker, RateLimit, TokenBucket

BANK, OTHER = Breaker("bank"), Breaker("other")
SLOW, FAST = RateLimit("slow", TokenBucket(10)), RateLimit("fast", TokenBucket(100))


@outlive.step(name="options.guarded", breaker=BANK, limit=SLOW, cost=2)
async def guarded() -> None:
    """Has all that can guard it."""


@outlive.step(name="options.broken", breaker=BANK)
async def breaking() -> None:
    """Has a breaker alone."""


@outlive.step(name="options.plain")
async def plain() -> None:
    """Has none."""


@pytest.mark.parametrize(
    ("step", "options", "guard"),
    [
        (guarded, {}, (BANK, SLOW, 2)),
        (guarded, {"timeout": 3}, (BANK, SLOW, 2)),
        (guarded, {"breaker": OTHER}, (OTHER, SLOW, 2)),
        (guarded, {"limit": FAST}, (BANK, FAST, 2)),
        (guarded, {"cost": 3}, (BANK, SLOW, 3)),
        (breaking, {"breaker": OTHER}, (OTHER, None, 1)),
        (breaking, {"limit": FAST}, (BANK, FAST, 1)),
        (breaking, {"limit": FAST, "cost": 5}, (BANK, FAST, 5)),
        (plain, {"limit": FAST}, (None, FAST, 1)),
        (plain, {"timeout": 3}, None),
    ],
    ids=lambda it: ",".join(it) if isinstance(it, dict) else getattr(it, "name", ""),
)
def test_guard_of_one_call_keeps_what_it_was_not_given(step: Any, options: dict[str, Any], guard: Any) -> None:
    """A breaker, a limit and a cost are exchanged one by one, and the step itself is not changed."""
    before = step.call_options.guard
    found = step.options(**options).call_options.guard

    assert (None if found is None else (found.breaker, found.limit, found.cost)) == guard
    assert step.call_options.guard is before
