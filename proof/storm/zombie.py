"""What a worker began after its run had been claimed by another worker: the yardstick for fencing.

A worker looks at its clock, and begins a step if its lease is certainly still held. It can be stopped for any time
between the look and the act, and no code of ours can close that gap: one beginning for each of its threads, the first
thing that the thread does when it goes on, and no more, because then it has to look again. That one is harmless by the
rules of at-least-once (its outcome cannot be committed), and counted. Any other is by a worker that does not look.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from outlive._kernel.journal.event import RunClaimed, RunCreated
from outlive.testing.completion import nonce_of
from proof.storm.effects import Effect
from proof.storm.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Claim:
    """One epoch of one tree."""

    worker: str
    """The session that had it."""
    at: float
    until: float
    """When the next epoch began; for ever, if it was the last."""
    until_worker: str
    """Who had the next one."""


@dataclass(frozen=True, slots=True)
class Late:
    """An attempt that was begun, or ended, when its epoch was over."""

    line: Effect
    claim: Claim


def claims(it: Evidence) -> dict[tuple[str, int], Claim]:
    """Who had which tree when: by the nonce of the tree, as keys have it, and the epoch."""
    found = {}
    for events in it.journals.values():
        nonce = nonce_of(events)
        starts = [
            (event.worker, 1 if isinstance(event, RunCreated) else event.epoch, event.at / 1e6)
            for event in events
            if isinstance(event, RunClaimed) or (isinstance(event, RunCreated) and not event.run and event.worker)
        ]
        ends = [(at, worker) for worker, _, at in starts[1:]]
        # A run that was cancelled before it began had no owner.
        ends += [(float("inf"), "")][: len(starts)]
        for (worker, epoch, at), (until, next_worker) in zip(starts, ends, strict=True):
            found[nonce, epoch] = Claim(worker, at, until, next_worker)
    return found


def late(it: Evidence, *, mark: str) -> Iterator[Late]:
    """What was begun (or ended) by an epoch that was over by then, in the order in which it was heard of."""
    known = claims(it)
    for line in it.effects:
        if line.mark == mark:
            claim = known.get((line.key.rpartition(":")[2], line.epoch))
            if claim is not None and line.at > claim.until:
                yield Late(line, claim)


def begun_late(it: Evidence) -> list[Late]:
    """Every beginning that came too late."""
    return list(late(it, mark="begin"))


def begun_without_a_look(it: Evidence) -> Iterator[Late]:
    """Late beginnings that the gap between look and act cannot explain.

    Nothing else happens on a thread between the two. So if the thread did anything after the claim and before the
    beginning, or had used its one excuse before, it has not looked.
    """
    threads: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for line in it.effects:
        threads[line.pid, line.thread].append(line.at)
    excused: set[tuple[str, int, int]] = set()
    for each in begun_late(it):
        line, claim = each.line, each.claim
        thread = claim.worker, line.pid, line.thread
        if thread in excused or any(claim.until < at < line.at for at in threads[line.pid, line.thread]):
            yield each
        excused.add(thread)
