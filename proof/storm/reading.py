"""The evidence, read in the ways that several checks need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from outlive._kernel.journal.event import RunCreated, SignalReceived
from outlive._kernel.model import Payload
from outlive.testing.completion import Completion, completions, living_id
from proof.storm.evidence import Evidence
from proof.storm.plan import Job, job


def number_in(payload: Payload | None) -> int | None:
    """The number that a payload holds."""
    value = value_in(payload)
    return value if isinstance(value, int) else None


def value_in(payload: Payload | None) -> Any:
    """Whatever small thing a payload holds."""
    if payload is None or isinstance(payload.v, msgspec.UnsetType):
        return None
    return msgspec.json.decode(payload.v)


def number_of(run_id: str) -> int:
    """The number of the job that a run belongs to."""
    return int(run_id.split("~", maxsplit=1)[0].split("-")[1])


def tried_jobs(it: Evidence) -> Iterator[Job]:
    """Every job that a client may have started."""
    for number in sorted({ack.number for ack in it.acks if ack.op == "trying"}):
        yield job(it.seed, number)


def started_jobs(it: Evidence) -> Iterator[Job]:
    """Every job whose start was acknowledged."""
    for number in sorted({ack.number for ack in it.acks if ack.op == "started"}):
        yield job(it.seed, number)


def all_completions(it: Evidence) -> Iterator[Completion]:
    """The completed calls of all journals."""
    for root_id, events in it.journals.items():
        yield from completions(root_id, events)


def generation_of(it: Evidence, root_id: str) -> int:
    """How many generations came before this one."""
    first = it.journals[root_id][0]
    return first.generation if isinstance(first, RunCreated) else 0


def chains(it: Evidence) -> dict[str, list[str]]:
    """The journals of each run id, one for each generation, oldest first."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for root_id in it.journals:
        found[living_id(root_id)].append(root_id)
    return {run_id: sorted(each, key=lambda root_id: generation_of(it, root_id)) for run_id, each in found.items()}


def signals_in(it: Evidence, root_id: str) -> list[SignalReceived]:
    """What one journal received. What it inherited has no key; all that clients send has one. Settlements of promises
    are signals with names of their own."""
    return [event for event in it.journals[root_id] if isinstance(event, SignalReceived) and event.name == "go"]


def signals_of_chains(it: Evidence) -> dict[str, list[SignalReceived]]:
    """What came from outside, in all generations together, by run id."""
    return {
        run_id: [event for root_id in roots for event in signals_in(it, root_id) if event.key]
        for run_id, roots in chains(it).items()
    }
