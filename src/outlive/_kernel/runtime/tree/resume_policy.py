"""Whether a claimed run goes on, or is parked before anything of it is done.

Decided from the claim, before any payload of the journal is parsed: a run that kills its workers does not get another
one, nor does one that has blocked the event loops of several. A run that its worker released always goes on; one that
lost its worker goes on unless a policy forbids it; and a person's request to resume is good for one claim, and not for
the next one after that was interrupted too.
"""

from __future__ import annotations

from collections.abc import Sequence

from outlive._kernel.client.why import instant
from outlive._kernel.journal.codec import Row, open_row, salt_of
from outlive._kernel.journal.event import RunClaimed
from outlive._kernel.model import Run
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.stalls import Stall, stalls_of
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.tree.holding import cancels_root, pause_in
from outlive._kernel.store.contract import Claim, InboxMessage, MessageKind

_QUARANTINED = (
    "quarantined: {attempts} workers were interrupted while they ran it and it made no progress; look at what it does "
    "next, then resume it, skip the step or cancel it"
)
_STALLED = (
    "quarantined: it has blocked the event loop of {count} workers, the last one for {seconds:g} s in {where}; let "
    "that code give way or put it into a step that is not async, then resume the run, or cancel it"
)
_NOT_RESUMED = "interrupted: its worker was lost, and {why}; resume it to let it go on all the same, or cancel it"


class ResumePolicy:
    """The policies of an engine and of its workflows, applied to claims."""

    def __init__(self, environment: Environment) -> None:
        self._recovery = environment.recovery
        self._attempts_max = environment.limits.attempts_max
        self._stalls_max = environment.limits.stalls_max
        self._clock = environment.clock
        self._resolve = environment.registry.workflow
        self._counters = environment.counters

    def reason_to_park(
        self,
        claim: Claim,
        rows: list[Row],
        inbox: list[InboxMessage],
        stalls: Sequence[Stall] = (),
        *,
        last_word: str = "",
    ) -> str:
        """Why a run is to be parked; empty if it may go on. `last_word` is what its lost worker said that was under
        way."""
        run = claim.run
        if (hold := pause_in(inbox)) is not None:
            return hold.reason
        is_resumed = any(message.kind is MessageKind.RESUME for message in inbox)
        # A cancelled run goes on to its end: it must not wait for a person who resumes it.
        is_cancelled = cancels_root(inbox)
        if run.attempts > self._attempts_max and not (is_resumed and not claim.interrupted):
            self._counters.runs_quarantined += 1
            return _QUARANTINED.format(attempts=run.attempts) + (last_word and f"; {last_word}")
        if claim.interrupted and len(own := stalls_of(run, stalls)) >= self._stalls_max:
            self._counters.runs_quarantined += 1
            return _STALLED.format(count=len(own), seconds=own[-1].seconds, where=own[-1].where)
        why = self._why_not(run, rows) if claim.interrupted and not is_cancelled else ""
        if not why:
            return ""
        self._counters.runs_held_back += 1
        return _NOT_RESUMED.format(why=why) + (last_word and f"; {last_word}")

    def _why_not(self, run: Run, rows: list[Row]) -> str:
        if not self._recovery.auto_resume:
            return "nothing is resumed here by itself (Recovery(auto_resume=False))"
        if not self._resolve(run.workflow, run.version).resumable:
            return f"workflow {run.workflow} is not resumable"
        age_max = self._recovery.resume_age_max
        if age_max is not None:
            moved_at = _progress_at(run, rows)
            if self._clock.now() - moved_at > age_max * MICROSECONDS:
                return f"its last progress, {instant(moved_at)}, is more than resume_age_max={age_max:g} seconds ago"
        return ""


def _progress_at(run: Run, rows: list[Row]) -> int:
    """When a run last did something. A claim is progress too, unless it is a take-over: what was due began to move,
    after a time in line, a wait or a retry."""
    for row in reversed(rows):
        event = open_row(row, salt=salt_of(run.nonce), run_id=run.id)
        if not (isinstance(event, RunClaimed) and event.interrupted):
            return event.at
    return run.created_at
