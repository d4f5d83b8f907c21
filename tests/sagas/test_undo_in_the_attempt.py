"""An undo that is called inside the attempt of its step: whose failure is whose."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from outlive._kernel.define.step import UnstorableResultError
from outlive._kernel.runtime.steps.unstorable import undo_at_once
from outlive.errors import UndoFailedError
from tests.interrupts import keyboard, press_ctrl_c


class Trying:
    """As much of an attempt as taking back needs."""

    def __init__(self) -> None:
        undo = SimpleNamespace(name="refund", kind=None, fn=lambda receipt: None)
        self.command = SimpleNamespace(call="charge", options=SimpleNamespace(undo=undo))
        self.is_wanted = True
        self.has_left_effect = False
        self.undone = 0

    def of_undo(self, undo: Any) -> Trying:
        """What the undo knows of itself."""
        return self


UNKEPT = UnstorableResultError(TypeError("no stored form"), ("receipt",))


async def taken_back(attempt: Any, error: BaseException | None, *, is_wanted: bool = True) -> None:
    """Take back, with an undo that ends so."""

    async def call(inside: Any, fn: Any) -> None:
        inside.undone += 1
        fn()
        inside.is_wanted = is_wanted
        if isinstance(error, KeyboardInterrupt):
            press_ctrl_c()
        elif error is not None:
            raise error

    await undo_at_once(attempt, UNKEPT, call)


async def test_step_fails_with_what_is_wrong_with_its_result_when_it_is_undone() -> None:
    """The effect is gone, and nothing is left."""
    attempt = Trying()
    with pytest.raises(TypeError, match="no stored form"):
        await taken_back(attempt, None)
    assert (1, False) == (attempt.undone, attempt.has_left_effect)


async def test_undo_that_fails_leaves_the_effect_and_says_so() -> None:
    """A person has to look at it."""
    attempt = Trying()
    with pytest.raises(UndoFailedError, match=r"refund.*no money.*no stored form") as failed:
        await taken_back(attempt, ValueError("no money"))
    assert attempt.has_left_effect
    assert "no stored form" in str(failed.value.__cause__)
    assert (1, [], ["charge"]) == (failed.value.attempts, list(failed.value.undone), list(failed.value.left))


@pytest.mark.parametrize(("error", "is_wanted"), [(KeyboardInterrupt(), True), (ValueError("no money"), False)])
async def test_interrupt_and_unwanted_attempt_leave_no_failed_undo(error: BaseException, *, is_wanted: bool) -> None:
    """An undo that a KeyboardInterrupt ends, or whose attempt is not wanted any more, does not count as failed."""
    attempt = Trying()
    with keyboard(), pytest.raises(type(error)):
        await taken_back(attempt, error, is_wanted=is_wanted)
    assert not attempt.has_left_effect


async def test_attempt_that_is_not_wanted_any_more_undoes_nothing() -> None:
    """Others may run the step meanwhile: it is theirs to take back."""
    attempt = Trying()
    attempt.is_wanted = False
    with pytest.raises(TypeError):
        await taken_back(attempt, None)
    assert 0 == attempt.undone
