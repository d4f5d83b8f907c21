"""Who was in which line when: by what steps wrote down, who was killed, and who owned what."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from outlive._kernel.journal.event import RunClaimed, RunCreated
from outlive.testing.completion import nonce_of
from proof.storm.evidence import Evidence
from proof.storm.limits.guests import LIMITS, line_of, slots_of
from proof.storm.zombie import claims


@dataclass(frozen=True, slots=True)
class Visit:
    """A step of a guest, for as long as its worker was alive and owned the run."""

    run: str
    pid: int
    epoch: int
    at: float
    until: float


@dataclass(frozen=True, slots=True)
class Crowd:
    """An instant at which guests of one line were under way together."""

    at: float
    runs: tuple[str, ...]

    @property
    def slots(self) -> int:
        """The slots that these guests have."""
        return sum(map(slots_of, self.runs))


def visits(it: Evidence) -> Iterator[Visit]:
    """Everything that steps did, until their worker was killed or another worker claimed the run."""
    known, killed = claims(it), {kill.pid: kill.at for kill in it.kills}
    ends = {(line.key, line.epoch, line.attempt): line.at for line in it.effects if line.mark in ("end", "failed")}
    for line in it.effects:
        if line.mark != "begin":
            continue
        claim = known.get((line.key.rpartition(":")[2], line.epoch))
        lost_at = math.inf if claim is None else claim.until
        until = min(ends.get((line.key, line.epoch, line.attempt), math.inf), killed.get(line.pid, math.inf), lost_at)
        if until > line.at:
            yield Visit(line.run, line.pid, line.epoch, line.at, until)


def crowds(it: Evidence) -> dict[str, Crowd]:
    """The largest crowd of each line; the first of equal ones."""
    turns: defaultdict[str, list[tuple[float, int, str]]] = defaultdict(list)
    for each in visits(it):
        turns[line_of(each.run)] += [(each.at, 1, each.run), (each.until, -1, each.run)]
    found: dict[str, Crowd] = {}
    for line, changes in turns.items():
        inside: defaultdict[str, int] = defaultdict(int)
        # One that ends at the instant at which another begins is gone by then.
        for at, change, run in sorted(changes, key=lambda each: each[:2]):
            inside[run] += change
            if not inside[run]:
                del inside[run]
            crowd = Crowd(at, tuple(sorted(inside)))
            if crowd.slots > (found[line].slots if line in found else 0):
                found[line] = crowd
    return found


Span = tuple[float, float]


def up(it: Evidence) -> list[Span]:
    """When at least one worker was at work: it had begun, was not killed and did not stand still. In order."""
    killed = {kill.pid: kill.at for kill in it.kills}
    spans: list[Span] = []
    for line in it.effects:
        if line.mark == "ready":
            at, end = line.at, killed.get(line.pid, math.inf)
            for freeze in sorted((each for each in it.freezes if each.pid == line.pid), key=lambda each: each.at):
                spans.append((at, min(end, freeze.at)))
                at = freeze.until
            spans.append((at, end))
    merged: list[Span] = []
    for at, until in sorted(span for span in spans if span[0] < span[1]):
        if merged and at <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(until, merged[-1][1])
        else:
            merged.append((at, until))
    return merged


def seconds_up(spans: list[Span], at: float, until: float) -> float:
    """How much of this span one worker at least was at work."""
    return sum(max(0.0, min(until, end) - max(at, begin)) for begin, end in spans)


def unused(it: Evidence) -> Iterator[tuple[str, float, float]]:
    """Spans in which as many slots were free as the largest guest in line takes: the line, the beginning and the end.

    A guest that takes more slots than are free has the guests behind it wait."""
    changes: defaultdict[str, list[tuple[float, str, int, int]]] = defaultdict(list)
    for run, events in it.journals.items():
        created = next((event.at / 1e6 for event in events if isinstance(event, RunCreated)), None)
        claimed = next((event.at / 1e6 for event in events if isinstance(event, RunClaimed)), None)
        if created is None or claimed is None:
            continue
        slots = slots_of(run)
        changes[line_of(run)] += [
            (created, run, 1, 0),
            (claimed, run, -1, slots),
            (events[-1].at / 1e6, run, 0, -slots),
        ]
    for line in filter(changes.__contains__, LIMITS):
        waiting, held = set[str](), 0
        since: float | None = None
        for at, run, gets_in_line, more_held in sorted(changes[line], key=lambda step: (step[0], *step[2:])):
            held += more_held
            if gets_in_line:
                (waiting.add if gets_in_line > 0 else waiting.discard)(run)
            is_unused = bool(waiting) and held + max(map(slots_of, waiting)) <= LIMITS[line]
            if is_unused and since is None:
                since = at
            elif not is_unused and since is not None:
                yield line, since, at
                since = None


def begins(it: Evidence, line: str) -> list[int]:
    """The instants at which guests of a line were taken out of it, in microseconds by the clock of the store."""
    return sorted(
        next(event.at for event in events if isinstance(event, RunClaimed))
        for run, events in it.journals.items()
        if line_of(run) == line and any(isinstance(event, RunClaimed) for event in events)
    )


def orphaned(it: Evidence) -> Iterator[tuple[str, float, float]]:
    """Spans in which a guest held a slot and its worker was dead or stood still: the run, the beginning and the end."""
    lost: defaultdict[int, list[float]] = defaultdict(list)
    for kill in it.kills:
        lost[kill.pid].append(kill.at)
    for freeze in it.freezes:
        lost[freeze.pid].append(freeze.at)
    pids = {(line.run, line.epoch): line.pid for line in it.effects if line.mark == "begin"}
    known = claims(it)
    nonces = {run: nonce_of(events) for run, events in it.journals.items()}
    for (run, epoch), pid in pids.items():
        claim = known.get((nonces.get(run, ""), epoch))
        if claim is None or claim.until == math.inf:
            continue
        yield from ((run, at, claim.until) for at in lost[pid] if claim.at < at < claim.until)
