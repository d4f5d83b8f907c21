"""What the engine counts and where it logs. Imports nothing of ours, so that every room may use it.

Counters are plain integers on one object per engine: adding to them costs nanoseconds, and whoever wants to
publish them (the HTTP API, a benchmark) reads them as they are.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

log = logging.getLogger("outlive")


@dataclass(slots=True)
class Counters:
    """How much one engine has done since it started."""

    commits: int = 0
    """Transactions with journal events."""
    rows: int = 0
    """Journal rows written."""
    bytes: int = 0
    """Bytes of journal rows written."""
    conflicts: int = 0
    """Changes refused because another writer was first."""
    unknowns: int = 0
    """Commits whose outcome had to be read back."""
    runs_started: int = 0
    runs_claimed: int = 0
    runs_replayed: int = 0
    """Executions rebuilt from their journal."""
    runs_evicted: int = 0
    runs_ended: int = 0
    runs_parked: int = 0
    steps_started: int = 0
    steps_retried: int = 0
    transactions: int = 0
    """Transactions of steps that were committed with the journal, or refused."""
    processes_begun: int = 0
    """Processes for steps with `process=True`."""
    signals_taken: int = 0
    sessions_ended: int = 0
    """Sessions of dead workers that were ended before their leases had run out."""

    def step_started(self, attempt: Any) -> None:
        """An attempt of a step is about to be called; a test may look at which one."""
        self.steps_started += 1
