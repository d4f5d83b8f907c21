"""Everything that is known when a trial is over."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import outlive
from outlive._kernel.client.why import why
from outlive._kernel.journal.codec import open_journal
from outlive._kernel.journal.event import AnyEvent, RunForked
from outlive._kernel.model import TERMINAL, Run, RunFilter, RunStatus
from outlive._kernel.store.contract import PAGE_SIZE_MAX, ItemResult, Store
from outlive.errors import OutliveError
from outlive.testing.child_process import tracebacks_in
from outlive.testing.fsck import Problem, check_store, each_root
from outlive.testing.line_file import read
from proof.storm.acks import Ack
from proof.storm.effects import Effect
from proof.storm.fault import LIMITS
from proof.storm.places import opened, read_ledger
from proof.storm.plan import job, stream_ops
from proof.storm.storm import Storm
from proof.storm.tally import Tally
from proof.storm.trial import Freeze, Kill, Stop, Trial

LOOK_SECONDS = 0.2
EVENTS_SHOWN = 8
SAID = {
    "lease": re.compile(r"this worker has lost its lease"),
    "session": re.compile(r"a new session has begun"),
    "full": re.compile(r"is full|No space left|disk I/O error"),
}
"""What workers log, by what it says of the trial."""
OPEN_STATUSES = tuple(status for status in RunStatus if status not in TERMINAL and status is not RunStatus.PARKED)


@dataclass
class Evidence:
    """What the plan, the clients, the steps and the store say."""

    trial: Trial
    dealt: frozenset[str] = frozenset()
    """What was to be done to the fleet."""
    faults: Counter[str] = field(default_factory=Counter)
    """What was done, and how often."""
    stops: list[Stop] = field(default_factory=list)
    cuts: int = 0
    """Commits that happened and were not answered."""
    said: Counter[str] = field(default_factory=Counter)
    """How often workers logged what `SAID` lists."""
    acks: list[Ack] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    """All roots by id."""
    journals: dict[str, list[AnyEvent]] = field(default_factory=dict)
    """By the id of the root; a damaged one is left out, as it is among the problems. Without what a fork has copied."""
    items: dict[str, list[ItemResult]] = field(default_factory=dict)
    """The outcomes of the items of batches, by the id of their chunk."""
    streams: dict[tuple[str, str], list[tuple[str, int, int, Any]]] = field(default_factory=dict)
    """By run and name: the call of each item, its epoch and attempt, and what it says."""
    ledger: list[tuple[str, int, int]] = field(default_factory=list)
    """The rows that steps with a transaction wrote: the key of the call, its place and its value."""
    problems: list[Problem] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    server_kills: list[float] = field(default_factory=list)
    """When the server of the store was killed."""
    freezes: list[Freeze] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    """The last line of each traceback in a log, with how often it is there."""
    stuck: list[str] = field(default_factory=list)
    """Runs that did not end in time, with everything that could explain it."""
    seconds: float = 0.0
    """How long the killing took."""
    tallies: list[Tally] = field(default_factory=list)
    """What engines counted."""

    @property
    def seed(self) -> int:
        """Of the plan."""
        return self.trial.seed


def observe(storm: Storm, into: Evidence, *, drain_seconds: float) -> None:
    """Let the storm rage, let everything finish, and collect what is known."""
    with storm:
        began = time.monotonic()
        storm.rage()
        into.seconds = time.monotonic() - began
        storm.tell("the storm is over; everything may finish now")
        deadline = time.monotonic() + drain_seconds
        storm.drain(drain_seconds)
        left = max(1.0, deadline - time.monotonic())
        into.stuck = asyncio.run(wait_for_all(storm.trial.url, seconds=left))
        storm.processes.stop_workers()
    processes = storm.processes
    into.kills, into.freezes, into.stops, into.lost = (
        processes.kills,
        processes.freezes,
        processes.stops,
        processes.lost,
    )
    into.dealt, into.faults, into.cuts = storm.dealt, storm.faults, storm.cuts
    into.server_kills = storm.outages.kills
    storm.tell("all processes have stopped; now the checks")
    asyncio.run(collect(into))


async def wait_for_all(url: str, *, seconds: float) -> list[str]:
    """Wait until every run has ended or is parked; the story of each that has not in time."""
    deadline = time.monotonic() + seconds
    async with opened(url) as store:
        while runs := await store.list_runs(RunFilter(statuses=OPEN_STATUSES, roots_only=True), limit=PAGE_SIZE_MAX):
            if time.monotonic() > deadline:
                return [await _describe(store, run) for run in runs]
            await asyncio.sleep(LOOK_SECONDS)
    return []


async def _describe(store: Store, run: Run) -> str:
    """A stuck run: why, its row, its inbox and its last events."""
    reason = why(run, run, await store.list_workers(), now_at=store.now())
    inbox = (await store.read_inbox([run.journal])).get(run.journal, [])
    rows = await store.read_journal(run.journal)
    events = [f"{seq} {body.decode('utf-8', 'replace')}" for seq, _, _, body in rows[-EVENTS_SHOWN:]]
    return "\n    ".join([f"{run.id}: {reason}", f"row: {run}", f"inbox: {inbox}", *events])


async def collect(into: Evidence) -> None:
    """Read the files and the store."""
    trial = into.trial
    into.acks = read(trial.acks, Ack)
    into.effects = read(trial.effects, Effect)
    into.tallies = read(trial.tallies, Tally)
    logs = {log.name: log.read_text("utf-8", "replace") for log in sorted(trial.folder.glob("*.log"))}
    into.tracebacks = _find_tracebacks(logs)
    into.said = Counter({what: sum(len(it.findall(log)) for log in logs.values()) for what, it in SAID.items()})
    async with opened(trial.url) as store:
        into.problems = await check_store(store)
        into.ledger = [(key, place, value) for key, place, value in await read_ledger(store)]
        async for root in each_root(store):
            into.runs[root.id] = root
            if "~chunk" in root.id:
                into.items[root.id] = await store.read_items(root.id)
            rows = await store.read_journal(root.journal)
            try:
                into.journals[root.id] = _own_life(open_journal(rows, nonce=root.nonce, run_id=root.id))
            except OutliveError:
                continue
    if trial.mix is LIMITS:
        return  # Its runs follow no plan.
    started = {ack.number for ack in into.acks if ack.op == "started"}
    planned = [job(into.seed, number) for number in sorted(started)]
    await collect_streams(into, [(it.id, f"stream-{op.place}") for it in planned for op in stream_ops(it)])


def _own_life(events: list[AnyEvent]) -> list[AnyEvent]:
    """A fork begins with a copy of what another run did; of that only its beginning is its own."""
    at = next((n for n, event in enumerate(events) if isinstance(event, RunForked)), None)
    return events if at is None else [events[0], *events[at:]]


async def collect_streams(into: Evidence, names: Iterable[tuple[str, str]]) -> None:
    """Read these streams, given by run and name. Those of a run that is stuck have no end, and are left out."""
    async with outlive.Engine(into.trial.url, worker=False) as engine:
        for run_id, name in names:
            if run_id in into.runs and not into.runs[run_id].status.is_terminal:
                continue
            items = engine.get(run_id).stream(name, positions=True)
            into.streams[run_id, name] = [(it.call, it.epoch, it.attempt, it.value) async for it in items]


def _find_tracebacks(logs: dict[str, str]) -> list[str]:
    """The tracebacks in the logs of processes that met a surprise; to be killed is not a surprise, and that a run has
    failed is a message."""
    found: Counter[str] = Counter()
    for log, text in logs.items():
        for trace in tracebacks_in(text):
            # Frames are indented; the first line that is not says which exception it was.
            raised = next((line for line in trace.splitlines() if not line.startswith(" ")), "cut off by a kill")
            if "in spawn_main" in trace and raised.startswith("EOFError"):
                continue  # A process for steps that Python was starting when its worker was killed.
            found[f"{log}: {raised}"] += 1
    return [f"{what} ({times} times)" for what, times in found.most_common()]
