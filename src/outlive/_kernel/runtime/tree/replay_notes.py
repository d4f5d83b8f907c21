"""A worker's memory of the trees that it has had: which it leaves alone, and which have changed calls.

Both memories are bounded. Beyond the bound a tree may be declined, or its differences logged, once more.
"""

from __future__ import annotations

from outlive._kernel.model import Run, child_id
from outlive._kernel.runtime.tree.live import LiveTree
from outlive.telemetry import Counters, log, run_fields

REPORTED_MAX = 100_000
"""Trees whose differences the log has."""
DECLINED_MAX = 100_000
"""Trees that are not claimed again before another worker has moved them once more."""


class ReplayNotes:
    """The notes of one session."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._declined: dict[int, int] = {}
        self._reported: set[int] = set()

    @property
    def declined(self) -> frozenset[tuple[int, int]]:
        """The trees that this worker has released because it cannot go on with them: journal and wake-up."""
        return frozenset(self._declined.items())

    def decline(self, live: LiveTree) -> None:
        """Newer code has moved this tree: leave it alone until it has moved again."""
        self._counters.runs_declined += 1
        self.leave_alone(live)

    def leave_alone(self, live: LiveTree) -> None:
        """Do not claim this tree again before it has moved."""
        assert live.fold.root.wake_at is not None
        self._declined.pop(live.journal, None)
        self._declined[live.journal] = live.fold.root.wake_at
        if len(self._declined) > DECLINED_MAX:
            del self._declined[next(iter(self._declined))]

    def report_differences(self, live: LiveTree, run: Run) -> None:
        """Count the calls that a replay made with other arguments; the log names the first one, once per run."""
        differences, live.execution.differences = live.execution.differences, {}
        if not differences:
            return
        self._counters.calls_changed += len(differences)
        if run.journal in self._reported:
            return
        if len(self._reported) >= REPORTED_MAX:
            self._reported.clear()
        self._reported.add(run.journal)
        first = next(iter(differences.values()))
        log.warning(
            "run %s: the code of %s calls %s with other arguments than event %d of the journal has (%d such calls); "
            "what the journal has counts",
            child_id(run.id, first.run),
            first.definition,
            first.call,
            first.seq,
            len(differences),
            extra=run_fields(run.id, run.workflow, step=first.call),
        )
