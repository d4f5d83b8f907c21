"""What must hold after a storm, beyond what must hold after a kill trial.

Each of them is shown to fail by a test that doctors the evidence (`tests/chaos/test_checks.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from outlive._journal.event import AttemptFailed, RunClaimed, RunCreated, StepFailed, StepSucceeded
from outlive._model import child_id
from outlive.testing.completion import living_id, nonce_of
from proof.chaos.evidence import StormEvidence
from proof.chaos.situation import LONG_TRIAL_KILLS, faults, situations
from proof.chaos.zombie import begun_late, begun_without_a_look
from proof.kill.checks import CHECKS, Check, enough_was_done, too_little_was_done

FREEZES_PER_EXCUSE = 40
"""The gap between look and act is a ten-thousandth of a second, some 50 times a second: to be frozen in it is rare."""
RUNS_PER_KILL_MIN = 0.25
"""Fewer than in a kill trial: there is an outage, and a process takes long to start on a machine with much to do."""


def zombies_began_nothing(it: StormEvidence) -> Iterator[str]:
    """A worker whose run was claimed by another began nothing of it once it had looked at its clock."""
    for each in begun_without_a_look(it):
        line, claim = each.line, each.claim
        yield (
            f"session {claim.worker} (process {line.pid}) began {line.key} in epoch {line.epoch}, "
            f"{line.at - claim.until:.3f} s after {claim.until_worker} had claimed the run"
        )

    found, excused = len(begun_late(it)), max(1, len(it.freezes) // FREEZES_PER_EXCUSE)
    if found > excused:
        yield f"{found} steps were begun after their run was claimed by another; {excused} may be, by bad luck"


def zombies_committed_nothing(it: StormEvidence) -> Iterator[str]:
    """Every outcome and every failed attempt in a journal was brought about by the claim that it stands behind."""
    seen = {(line.key, line.epoch, line.attempt) for line in it.effects if line.mark in ("begin", "end", "failed")}
    for root_id, events in it.journals.items():
        nonce, epoch = nonce_of(events), 0
        for event in events:
            match event:
                case RunCreated(run=0):
                    epoch = 1 if event.worker else 0
                case RunClaimed():
                    epoch = event.epoch
                case StepSucceeded() | StepFailed() | AttemptFailed():
                    if isinstance(event, StepFailed) and event.failure.type.endswith("StepInterrupted"):
                        continue  # Written by whoever found that nobody knows.
                    key = f"{child_id(living_id(root_id), event.run)}:{event.call}:{nonce}"
                    if (key, epoch, event.attempt) not in seen:
                        yield f"{key}: attempt {event.attempt} has an outcome of epoch {epoch}, and never ran in it"
                case _:
                    continue


def epochs_have_one_owner_each(it: StormEvidence) -> Iterator[str]:
    """Each claim raises the epoch of its run by one."""
    for root_id, events in it.journals.items():
        first = events[0] if events else None
        last = 1 if isinstance(first, RunCreated) and first.worker else 0
        for event in events:
            if isinstance(event, RunClaimed):
                if event.epoch != last + 1:
                    yield f"{root_id}: {event.worker} claimed epoch {event.epoch} after epoch {last}"
                last = event.epoch


def orderly_stops_were_orderly(it: StormEvidence) -> Iterator[str]:
    """Whoever was asked to stop when he was at work did so by himself and said that all was well."""
    ready = {line.pid for line in it.effects if line.mark == "ready"}
    for stop in it.stops:
        if stop.code and stop.pid in ready:
            yield f"process {stop.pid} was sent SIGTERM and ended with code {stop.code} after {stop.seconds:.1f} s"


def everything_happened(it: StormEvidence) -> Iterator[str]:
    """Every fault was dealt out and, in a long trial, everything came about that could have gone wrong."""
    yield from (f"nobody met this: {what}" for what, times in faults(it).items() if not times)
    if len(it.kills) >= LONG_TRIAL_KILLS:
        yield from (f"this never came about: {what}" for what, times in situations(it).items() if not times)


def work_went_on(it: StormEvidence) -> Iterator[str]:
    """The system worked meanwhile, between all that is done to it."""
    yield from too_little_was_done(it, per_kill=RUNS_PER_KILL_MIN)


STORM_CHECKS: list[Check] = [
    zombies_began_nothing,
    zombies_committed_nothing,
    epochs_have_one_owner_each,
    orderly_stops_were_orderly,
    everything_happened,
    work_went_on,
]
ALL_CHECKS: list[Check] = [*(check for check in CHECKS if check is not enough_was_done), *STORM_CHECKS]
