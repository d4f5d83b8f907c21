"""What users read in a history: typed events, when steps began and ended, and plain words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive import events
from outlive._kernel.journal.words import in_words
from outlive.events import AttemptFailed, RunSuspended, StepFailed, StepSucceeded
from tests.engine.inside import journal_of
from tests.engine.support import waits
from tests.journal.events import SAMPLES


@outlive.step(retry=outlive.Retry(attempts=2, first=0.001))
async def slow_then_fine(seconds: float) -> int:
    await asyncio.sleep(seconds)
    if outlive.current_step().attempt == 1:
        raise OSError("not yet")
    return 1


@outlive.step(retry=outlive.Retry(attempts=1))
def fails_on_a_thread() -> None:
    raise KeyError("gone")


@outlive.workflow
async def told_in_words() -> None:
    await slow_then_fine(0.02)
    try:
        await fails_on_a_thread()
    except KeyError:
        await outlive.wait_for_signal("go")


@pytest.mark.every_store
async def test_a_history_says_when_steps_began_and_ended(engine: Any) -> None:
    """From the event of an attempt: when it ended, and how long it took."""
    run = await engine.start(told_in_words, id="run-1")
    await waits(run)
    history = await journal_of(run)
    (failed,) = [event for event in history if isinstance(event, AttemptFailed)]
    (fine,) = [event for event in history if isinstance(event, StepSucceeded)]
    (gone,) = [event for event in history if isinstance(event, StepFailed)]
    assert failed.took >= 15_000 <= fine.took
    assert gone.took > 0
    words = [in_words(event) for event in history]
    assert words[0] == "the run of told_in_words, version 1, began"
    assert words[1].startswith("attempt 1 of step slow_then_fine failed in 0.0")
    assert words[1].partition("OSError: ")[2].startswith("not yet; the next one comes at 20")
    assert "step slow_then_fine succeeded at attempt 2 in 0.0" in words[2]
    assert "KeyError: 'gone'" in words[3]
    assert isinstance(history[-1], RunSuspended)
    assert words[-1] == "the run waits for signal go"
    await run.signal("go")
    await run.result()


@pytest.mark.parametrize("name", SAMPLES)
def test_every_event_is_public_and_has_words(name: str) -> None:
    """A class in `outlive.events`, and one sentence without a name of ours."""
    event = SAMPLES[name]
    assert type(event) is getattr(events, name)
    words = in_words(event)
    assert words
    assert "Payload" not in words
    assert not words.endswith((":", " "))


@pytest.mark.parametrize(
    ("interrupted", "words"),
    [(False, "worker anvil took the run"), (True, "worker anvil took the run over, whose worker was lost")],
)
def test_a_run_is_taken_over_only_from_another_worker(interrupted: bool, words: str) -> None:  # noqa: FBT001
    """The first worker, and one that goes on after a wait, takes it."""
    assert in_words(events.RunClaimed(worker="anvil", epoch=1, interrupted=interrupted, at=0)) == words
