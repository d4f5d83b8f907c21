"""What must hold after a storm over queues, each check one function, and the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from outlive._kernel.model import RunStatus
from proof.storm import checks
from proof.storm.evidence import Evidence
from proof.storm.limits.guests import LIMITS, WINDOWS, line_of
from proof.storm.limits.holding import begins, crowds, orphaned, seconds_up, unused, up
from proof.storm.processes import LEASE_SECONDS

SLACK_SECONDS = 1.0
"""For a machine with much to do: between a lease that has run out and the claim by another worker there is a poll."""
GUESTS_PER_KILL_MIN = 0.5


def limits_held(it: Evidence) -> Iterator[str]:
    """At no instant more guests were under way, with live owners, than their queue or their key allows."""
    for line, crowd in crowds(it).items():
        if line in LIMITS and crowd.slots > LIMITS[line]:
            yield f"{line} allows {LIMITS[line]}, and at {crowd.at:.3f} there were {', '.join(crowd.runs)}"


def windows_held(it: Evidence) -> Iterator[str]:
    """In no period more guests left a line than its window allows."""
    for line, (limit, width) in WINDOWS.items():
        found = begins(it, line)
        for first, beyond in zip(found, found[limit:], strict=False):
            if beyond - first < width:
                seconds = (beyond - first) / 1e6
                yield f"{line} allows {limit} in any {width / 1e6:g} s, and {limit + 1} left it in {seconds:.6f} s"


def limits_were_reached(it: Evidence) -> Iterator[str]:
    """Every queue and every key had as many slots taken at once as it may, at least once, and every window was full."""
    found = crowds(it)
    for line, limit in LIMITS.items():
        seen = found[line].slots if line in found else 0
        if seen < limit:
            yield f"{line} allows {limit}, and never had more than {seen}"
    for line, (limit, width) in WINDOWS.items():
        left = begins(it, line)
        if not any(last - first < width for first, last in zip(left, left[limit - 1 :], strict=False)):
            yield f"the window of {line} was never full"


def no_queue_stood_still(it: Evidence) -> Iterator[str]:
    """While a worker was at work, no slot was free, or with a dead worker, for longer than a lease."""
    most = LEASE_SECONDS + SLACK_SECONDS
    for what, seconds in _still(it):
        if seconds > most:
            yield f"{what} for {seconds:.2f} s"


def enough_guests_left(it: Evidence) -> Iterator[str]:
    """The queues worked meanwhile: all guests succeeded, and they were enough."""
    for run in it.runs.values():
        if run.status is not RunStatus.SUCCEEDED:
            yield f"{run.id} is {run.status.value}"
    if len(it.runs) < GUESTS_PER_KILL_MIN * it.trial.kills:
        yield f"only {len(it.runs)} guests, with {it.trial.kills} kills"


def _still(it: Evidence) -> Iterator[tuple[str, float]]:
    spans = up(it)
    for line, at, until in unused(it):
        yield f"{line} had a free slot at {at:.3f}", seconds_up(spans, at, until)
    for run, at, until in orphaned(it):
        yield f"{run} was with a lost worker at {at:.3f}", seconds_up(spans, at, until)


def figures(it: Evidence) -> Iterator[str]:
    """The figures of each queue, for people."""
    found = crowds(it)
    for line, limit in LIMITS.items():
        guests = sum(line_of(run) == line for run in it.runs)
        most = found[line].slots if line in found else 0
        yield f"  {line:11} {guests:,} guests, {most} at once of {limit} allowed"
    for line, (limit, width) in WINDOWS.items():
        left = begins(it, line)
        least = min((last - first for first, last in zip(left, left[limit:], strict=False)), default=0) / 1e6
        yield (
            f"  {line:11} {len(left):,} guests; {limit + 1} left it in {least:.6f} s at least, "
            f"with {limit} allowed in any {width / 1e6:g} s"
        )
    still = max(_still(it), key=lambda each: each[1], default=("no slot was free or with a lost worker", 0.0))
    yield f"  standstill  {still[1]:.2f} s at most, with a lease of {LEASE_SECONDS:g} s: {still[0]}"


CHECKS: list[Callable[[Evidence], Iterator[str]]] = [
    limits_held,
    windows_held,
    limits_were_reached,
    no_queue_stood_still,
    enough_guests_left,
    checks.no_process_died_by_itself,
    checks.nothing_surprised_a_process,
    checks.every_run_ended,
    checks.completed_steps_never_ran_again,
    checks.zombies_began_nothing,
    checks.zombies_committed_nothing,
    checks.epochs_have_one_owner_each,
    checks.the_store_is_whole,
]
