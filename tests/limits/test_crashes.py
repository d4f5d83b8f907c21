"""Limits and breakers when the process dies at every commit, and before and after every change of a cell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive.errors import StepInterruptedError
from outlive.limits import Breaker, FixedWindow, RateLimit
from outlive.testing import Survivor, crash_everywhere
from outlive.testing.crash.everywhere import POINTS_MAX
from tests.engine.support import stage
from tests.limits.world import HOUR

HOURLY = RateLimit("hourly in crashes", FixedWindow(1, HOUR), shared=True)
FRAGILE = Breaker("fragile in crashes", failures=2, reset=60, shared=True)


def call(what: str) -> None:
    """Note a call, and the hour of it."""
    stage.call((what, int(outlive.now().timestamp() // HOUR)))


@outlive.step(name="limit_crashes.slowly", limit=HOURLY)
async def slowly(what: str) -> str:
    call(what)
    return what


@outlive.step(name="limit_crashes.slowly_once", limit=HOURLY, once=True)
async def slowly_once(what: str) -> str:
    call(what)
    return what


@outlive.step(name="limit_crashes.fragile", breaker=FRAGILE, retry=Retry(attempts=4, first=0, jitter=0))
async def fragile(what: str) -> str:
    if outlive.current_step().attempt < 4:
        raise ConnectionError(what)
    return what


@outlive.workflow(name="limit_crashes.slow")
async def slow() -> list[str]:
    return [await slowly(f"call {number}") for number in range(3)]


@outlive.workflow(name="limit_crashes.slow_once")
async def slow_once() -> list[str]:
    said = [await slowly("first")]
    try:
        said.append(await slowly_once("once"))
    except StepInterruptedError:
        said.append("interrupted")
    return said


@outlive.workflow(name="limit_crashes.breaking")
async def breaking() -> str:
    return await fragile("cup")


def reset() -> None:
    """A world in which nothing was called."""
    stage.calls.clear()


def check_hours(survivor: Survivor) -> None:
    """One call in an hour, at whichever moment a process died."""
    assert max(Counter(hour for _, hour in stage.calls).values()) == 1


def options_for(kind: str, tmp_path: Path) -> dict[str, Any]:
    """Where it is tried; on a file not everywhere, for that takes half a minute."""
    if kind == "sqlite":
        return {"url": f"sqlite:{tmp_path / 'crash.db'}", "max_points": 6}
    return {"url": "memory:", "max_points": 6 if kind == "some" else POINTS_MAX}


@pytest.mark.parametrize("kind", ["some", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("all", "sqlite"))])
async def test_a_limit_holds_whenever_the_process_dies(kind: str, tmp_path: Path) -> None:
    """No hour has two calls, every step has its outcome, and no attempt is used up by waiting."""
    report = await crash_everywhere(slow, reset=reset, check=check_hours, **options_for(kind, tmp_path))

    assert report.points >= 6


async def test_a_step_that_is_called_once_is_called_once_whenever_the_process_dies() -> None:
    """A step that may be called once is called at most once, and is not taken for interrupted while it waits for its
    limit."""
    ends: Counter[str] = Counter()

    def check(survivor: Survivor) -> None:
        check_hours(survivor)
        said = survivor.result[1]
        ends[said] += 1
        assert Counter(what for what, _ in stage.calls)["once"] <= 1

    await crash_everywhere(slow_once, reset=reset, check=check, same_end=False)

    assert ends["once"] > ends["interrupted"] > 0


@pytest.mark.parametrize("points", [6, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_a_breaker_neither_loses_nor_invents_attempts_whenever_the_process_dies(points: int) -> None:
    """The run ends as the undisturbed one: with its fourth attempt."""
    report = await crash_everywhere(breaking, max_points=points)

    assert report.points >= min(points, 11)
