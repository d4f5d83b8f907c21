"""What comes out of `crash_everywhere`: a report, or an error with everything one needs to find the bug."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from outlive.client.handle import RunHandle
from outlive.testing.engine import TestEngine


class SurvivalError(AssertionError):
    """A workflow did not survive a crash.

    `what` says what differed, `crashes` where the process died, `journal` what was in the store then.
    """

    def __init__(self, workflow: str, *, what: str, crashes: list[str], journal: str) -> None:
        self.workflow, self.what, self.crashes, self.journal = workflow, what, crashes, journal
        where = "without any crash" if not crashes else "when the process died " + ", and again ".join(crashes)
        super().__init__(f"{workflow} goes wrong {where}:\n{what}\nin the store at that point:\n{journal}")


@dataclass(frozen=True, slots=True)
class Survivor:
    """A run that has ended, with or without crashes; given to `check` while its engine still lives."""

    engine: TestEngine
    run: RunHandle[Any]
    result: Any
    """What the run returned; None if it failed."""
    error: str
    """How it failed; empty if it returned."""
    crashes: tuple[str, ...]
    """Where the process died before."""


@dataclass(frozen=True, slots=True)
class CrashReport:
    """What `crash_everywhere` did."""

    points: int
    """Places where the process died: writes of the undisturbed run, times before and after."""
    runs: int
    """How often the workflow was run."""
    result: Any
    """What it returned each time; None if it failed each time."""
    error: str
    """How it failed each time; empty if it returned."""
    writes: tuple[str, ...]
    """What the undisturbed run wrote, in order."""
