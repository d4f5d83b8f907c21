"""Going on as a new generation, in the core: an end like every other, from every prefix of the journal."""

from __future__ import annotations

import asyncio

import pytest

from outlive import continue_as_new, start, wait_for_signal
from outlive._kernel.model import RunStatus
from outlive._kernel.replay.command import EndRun
from tests.replay.define import Code, cancel, signal, step, workflow
from tests.replay.driver import live
from tests.replay.life import assert_replays, fed

SEEDS = [None, *range(10)]


@step()
async def work(n: int) -> int:
    """Something to wait for."""
    return n


@workflow()
async def sleeps() -> None:
    """A child that cleans up."""
    try:
        await asyncio.sleep(3600)
    finally:
        await work(99)


@workflow()
async def goes_on(n: int) -> None:
    """Leaves a child and a branch behind."""
    await start(sleeps)
    branch = asyncio.ensure_future(wait_for_signal("kept"))
    await work(n)
    assert not branch.done()
    continue_as_new(n + 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_generation_ends_when_the_runs_that_it_left_have_ended(seed: int | None) -> None:
    """A generation that goes on as new ends when the child that it left behind has ended, and replays so from every
    prefix."""
    life = live(goes_on, 1, code=Code(goes_on, sleeps), seed=seed, crash_at=range(100))

    assert life.status == "continued"
    assert life.kinds[-2:] == ["RunCancelled", "RunContinued"]
    assert_replays(life)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cancel_while_it_winds_up_is_how_it_ends(seed: int | None) -> None:
    """Whenever the cancel comes, it is not lost."""
    life = live(goes_on, 1, code=Code(goes_on, sleeps), seed=seed, crash_at=range(100), inject={3: [cancel("enough")]})

    assert life.status == "cancelled"
    assert_replays(life)


def test_the_successor_and_the_signals_that_were_not_taken_are_known_at_the_end() -> None:
    """In the order in which they came, by name."""
    messages = [signal("a", 1), signal("b", 2), signal("a", 3)]
    life = live(goes_on, 7, code=Code(goes_on, sleeps), inject={1: messages})
    with fed(life.code, life.journal[:-1]) as execution:
        (end,) = execution.outstanding()
        assert isinstance(end, EndRun)
        assert end.status is RunStatus.CONTINUED
        assert end.successor is not None
        assert end.successor.workflow is goes_on.spec
        assert end.successor.arguments == goes_on.spec.signature.encode((8,), {})
        assert [name for name, _ in execution.frames[0].buffered_signals()] == ["a", "a", "b"]
