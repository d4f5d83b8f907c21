"""How often each thing happened that could have gone wrong. A trial in which it did not happen proves nothing of it."""

from __future__ import annotations

from collections import defaultdict

from outlive._kernel.journal.event import RunClaimed
from proof.storm.evidence import Evidence
from proof.storm.reading import all_completions
from proof.storm.tally import total
from proof.storm.zombie import Claim, begun_late, claims, late

LONG_TRIAL_KILLS = 100
"""From so many kills on everything must have come about."""
_NAMES = {
    "client": "a client was killed",
    "all": "all workers were killed at once",
    "one": "a worker was killed",
    "freeze": "a worker was frozen for longer than its lease",
    "clean": "a worker was sent SIGTERM",
    "outage": "the store was away for long",
    "cut": "a line was to be cut after a commit",
    "deaf": "nothing got through for longer than a lease",
    "full": "the disk was full",
}


def faults(it: Evidence) -> dict[str, int]:
    """What was done to the fleet."""
    found = {name: it.faults[kind] for kind, name in _NAMES.items() if kind in it.dealt}
    if it.trial.server_kills:
        found["the server was killed with -9"] = len(it.server_kills)
    return found


def situations(it: Evidence) -> dict[str, int]:
    """What came of it."""
    counted = total(it.tallies)
    claimed = claims(it)
    phases = [kill.phase for kill in it.kills]
    ended_late = list(late(it, mark="end"))
    found = {
        "a worker was killed in a step": phases.count("in a step"),
        "a worker was killed while it started": phases.count("starting"),
        "a run was taken over from a worker that was gone": sum(
            isinstance(event, RunClaimed) and event.interrupted for events in it.journals.values() for event in events
        ),
        "a step was begun again by another worker": _begun_again(it),
        "a step that is called once was found interrupted": sum(done.is_interrupted for done in all_completions(it)),
        "a worker lost its lease and let go of its runs": it.said["lease"],
        "a worker began a new session": it.said["session"],
        "a worker woke up and its runs had other owners": _zombies(it, claimed),
        "a step ended whose run had another owner, and was not heard": len(ended_late),
        "a write was refused because another was first": counted["conflicts"],
        "a run changed hands": sum(
            bool(claim.until_worker) and claim.until_worker != claim.worker for claim in claimed.values()
        ),
    }
    if "clean" in it.dealt:
        found["a worker that was asked to stop did"] = sum(not stop.code for stop in it.stops)
    if "cut" in it.dealt:
        found["a commit happened and was not answered"] = it.cuts
        found["an unknown commit was read back"] = counted["unknowns"]
    if "full" in it.dealt:
        found["a process noticed that the disk was full"] = it.said["full"]
    return found


def curiosities(it: Evidence) -> dict[str, int]:
    """What may happen, and is counted; no check demands it."""
    return {
        "a step was begun in the gap between look and act": len(begun_late(it)),
        "the server gave up on a full disk": it.faults["server gave up"],
    }


def _zombies(it: Evidence, claimed: dict[tuple[str, int], Claim]) -> int:
    """Freezes in which another worker claimed a run that the frozen worker had begun a step of."""
    lost: defaultdict[int, set[float]] = defaultdict(set)
    for line in it.effects:
        claim = claimed.get((line.key.rpartition(":")[2], line.epoch)) if line.mark == "begin" else None
        if claim is not None and claim.until_worker != claim.worker:
            lost[line.pid].add(claim.until)
    return sum(any(freeze.at < at < freeze.until for at in lost[freeze.pid]) for freeze in it.freezes)


def _begun_again(it: Evidence) -> int:
    epochs: defaultdict[str, set[int]] = defaultdict(set)
    for line in it.effects:
        if line.mark == "begin":
            epochs[line.key].add(line.epoch)
    return sum(len(each) > 1 for each in epochs.values())
