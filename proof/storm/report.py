"""What a trial prints at its end: the counts, each check with its verdict, and how to do it again."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator

from outlive._kernel.journal.event import RunClaimed, RunCreated, StepFailed, StepSucceeded
from outlive.testing.completion import nonce_of
from proof.storm.checks import CHECKS
from proof.storm.evidence import Evidence
from proof.storm.fault import LIMITS
from proof.storm.limits import checks as limits
from proof.storm.situation import curiosities, faults, situations
from proof.storm.trial import Trial

COMPLAINTS_SHOWN = 5


def report(evidence: Evidence) -> tuple[list[str], bool]:
    """The lines to print, and whether everything holds."""
    verdicts: list[str] = []
    is_right = True
    is_about_limits = evidence.trial.mix is LIMITS
    for check in limits.CHECKS if is_about_limits else CHECKS:
        complaints = list(check(evidence))
        is_right = is_right and not complaints
        promise = (check.__doc__ or "").strip().splitlines()[0]
        verdicts.append(f"  {'ok   ' if not complaints else 'WRONG'}  {promise}")
        verdicts += [f"           {complaint}" for complaint in complaints[:COMPLAINTS_SHOWN]]
        if len(complaints) > COMPLAINTS_SHOWN:
            verdicts.append(f"           ... and {len(complaints) - COMPLAINTS_SHOWN} more")
    details = limits.figures(evidence) if is_about_limits else tables(evidence)
    return [*counts(evidence), *details, *verdicts, *again(evidence.trial, is_right=is_right)], is_right


def counts(it: Evidence) -> Iterator[str]:
    """How much happened."""
    events = [event for journal in it.journals.values() for event in journal]
    steps = sum(isinstance(event, StepSucceeded | StepFailed) for event in events)
    phases = Counter(kill.phase for kill in it.kills)
    yield f"  runs        {len(it.runs):,} trees, {sum(isinstance(e, RunCreated) for e in events):,} runs in them"
    yield f"  steps       {steps:,} completed, {sum(e.mark == 'begin' for e in it.effects):,} attempts begun"
    yield f"  answers     {', '.join(f'{op} {n:,}' for op, n in sorted(Counter(a.op for a in it.acks).items()))}"
    doing = ", ".join(f"{count} {phase}" for phase, count in phases.most_common())
    yield f"  kills       {len(it.kills)} in {it.seconds:.0f} s: {doing}"
    waits = sorted(recovery_seconds(it))
    if len(waits) > 1:
        shares = statistics.quantiles(waits, n=100)
        yield (
            f"  recovery    {shares[49]:.2f} s median, {shares[89]:.2f} s p90, {shares[98]:.2f} s p99, "
            f"{waits[-1]:.2f} s max (from the kill of a worker to the claim of a run it had)"
        )


def tables(it: Evidence) -> Iterator[str]:
    """What was done, and what came of it."""
    for title, found in (("done", faults(it)), ("came of it", situations(it)), ("besides", curiosities(it))):
        yield f"  {title}"
        yield from (f"    {times:>7,}  {what}" for what, times in found.items())


def recovery_seconds(it: Evidence) -> Iterator[float]:
    """For each take-over, the time from the kill of the former owner to the claim.

    A worker that is frozen in the middle of a transaction keeps writers waiting; that time says nothing of recovery.
    """
    killed_at = {kill.pid: kill.at for kill in it.kills}
    # A key ends with the nonce of its tree. A step in a process has a pid of its own, and is not a worker.
    pid_of_claim = {
        (line.key.rpartition(":")[2], line.epoch): line.pid
        for line in it.effects
        if line.mark == "begin" and line.step != "storm.work_in_process"
    }
    pid_of_worker: dict[str, int] = {}
    owners: list[tuple[str, float]] = []
    for events in it.journals.values():
        owner, nonce = "", nonce_of(events)
        for event in events:
            if isinstance(event, RunClaimed):
                if event.interrupted:
                    owners.append((owner, event.at / 1e6))
                owner = event.worker
                if (nonce, event.epoch) in pid_of_claim:
                    pid_of_worker[owner] = pid_of_claim[nonce, event.epoch]
    for owner, at in owners:
        pid = pid_of_worker.get(owner)
        if pid is None or pid not in killed_at:
            continue
        began = killed_at[pid]
        if at >= began and not any(freeze.at < at and began < freeze.until + 1 for freeze in it.freezes):
            yield at - began


def again(trial: Trial, *, is_right: bool) -> Iterator[str]:
    """The last words: the verdict, where the files are, and the command that repeats the trial."""
    yield ""
    yield "Nothing was lost and nothing was done twice." if is_right else f"SOMETHING IS WRONG. Files: {trial.folder}"
    yield f"Again: {trial.again}"
