"""The results of `crash_everywhere`: a report, or an error with everything one needs to find the bug."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from outlive._kernel.client.handle import RunHandle
from outlive.testing.engine import TestEngine


class SurvivalError(AssertionError):
    """A workflow did not survive a crash.

    `what` says what differed, `crashes` where the process died, `journal` what was in the store at the last crash that
    had left it in order, and `journal_now` what is in it now.
    """

    def __init__(self, workflow: str, *, what: str, crashes: list[str], journal: str, journal_now: str) -> None:
        self.workflow, self.what, self.crashes = workflow, what, crashes
        self.journal, self.journal_now = journal, journal_now
        where = "without any crash" if not crashes else "when the process died " + ", and again ".join(crashes)
        parts = [f"{workflow} goes wrong {where}:", what]
        if journal and journal != journal_now:
            parts += ["in the store at the crash:", journal]
        super().__init__("\n".join([*parts, "in the store now:", journal_now or "  (nothing)"]))


@dataclass(frozen=True, slots=True)
class Survivor:
    """A run that has ended, with or without crashes; given to `check` while its engine still lives."""

    engine: TestEngine
    run: RunHandle[Any]
    result: Any
    """The result of the run; None if it failed."""
    error: str
    """How it failed; empty if it returned."""
    crashes: tuple[str, ...]
    """Where the process died before."""


@dataclass(frozen=True, slots=True)
class CrashReport:
    """The report of `crash_everywhere`."""

    points: int
    """Points where the process died: before and after the writes of the undisturbed run."""
    points_found: int
    """How many such points there are. More than `points` if `max_points` or `max_seconds` left some out."""
    runs: int
    """How often the workflow was run."""
    result: Any
    """The result of the workflow each time; None if it failed each time."""
    error: str
    """How it failed each time; empty if it returned."""
    writes: tuple[str, ...]
    """The writes of the undisturbed run, in order."""
