"""What the journal of a claimed run says: whether it is new, and who lets it go on."""

from __future__ import annotations

from typing import Any

import pytest

from outlive._kernel.runtime.tree.events import is_new, resumed_by
from outlive.events import RunClaimed, RunCreated, RunParked, RunReleased, RunSuspended, StepSucceeded
from outlive_conformance.suite.builders import value

BY_CLIENT = RunCreated(at=1, workflow="w", version=1, input=value(1))
BY_WORKER = RunCreated(at=1, workflow="w", version=1, input=value(1), worker="other")
CLAIMED = RunClaimed(at=2, worker="me", epoch=1)
TAKEN_OVER = RunClaimed(at=2, worker="me", epoch=1, interrupted=True)
STEPPED = StepSucceeded(at=1, call="step", result=value(1))
SUSPENDED = RunSuspended(at=1, waits=())
RELEASED = RunReleased(at=1)
PARKED = RunParked(at=1, reason="why not")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([BY_CLIENT, CLAIMED], True),
        ([BY_WORKER, CLAIMED], False),
        ([BY_CLIENT, STEPPED, CLAIMED], False),
        ([BY_CLIENT], False),
        ([STEPPED, CLAIMED], False),
    ],
)
def test_run_is_new_that_was_created_and_never_moved(events: list[Any], *, expected: bool) -> None:
    """Its observers have heard nothing of it."""
    assert expected == is_new(events)


@pytest.mark.parametrize(
    ("events", "has_skip_request", "expected"),
    [
        ([BY_WORKER, TAKEN_OVER], False, "worker"),
        ([BY_CLIENT, CLAIMED], False, ""),
        ([BY_CLIENT, STEPPED, TAKEN_OVER], False, "worker"),
        ([BY_CLIENT, RELEASED, CLAIMED], False, "worker"),
        ([BY_CLIENT, SUSPENDED, CLAIMED], False, ""),
        ([BY_CLIENT, SUSPENDED, CLAIMED], True, ""),
        ([BY_CLIENT, PARKED, CLAIMED], True, "person"),
        ([BY_CLIENT, PARKED, CLAIMED], False, ""),
        ([TAKEN_OVER], False, ""),
        ([], True, ""),
    ],
)
def test_run_goes_on_because_of_a_worker_or_a_person_or_has_only_slept(
    events: list[Any], expected: str, *, has_skip_request: bool
) -> None:
    """Observers hear who it was."""
    assert expected == resumed_by(events, has_skip_request=has_skip_request)
