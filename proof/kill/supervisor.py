"""Starts the processes of a trial, kills them, and starts them again.

It is the direct parent of every process, so that a killed one is reaped, and it decides from the seed whom to kill
and when. A fresh process is often killed again while it starts or recovers: recovery must survive recovery. Now and
then a worker is frozen for longer than its lease instead: it wakes up as one whose runs belong to others. The server of
the store, where there is one, is killed too (`outage`).
"""

from __future__ import annotations

import math
import random
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from outlive.testing.child_process import ChildProcess, end_all
from outlive.testing.line_file import Tail
from outlive.testing.postgres import PostgresServer
from proof.kill import effects, tally
from proof.kill.acks import Ack
from proof.kill.effects import Effect
from proof.kill.outage import Outages

BEGIN_SECONDS_MAX = 30.0
LOOK_SECONDS = 0.05
LEASE_SECONDS = 2.0
FRESH_SECONDS = 0.3
PAUSE_SECONDS = (0.1, 1.2)
AGAIN_SECONDS = (0.05, 0.3)
AGAIN_SHARE = 0.3
CLIENT_SHARE = 0.1
ALL_SHARE = 0.04
FREEZE_SHARE = 0.06
FREEZE_SECONDS = (LEASE_SECONDS * 1.1, LEASE_SECONDS * 1.8)
WORKING_CLIENT_SHARE = 0.5
"""Clients that have a worker of their own: then a run is created and owned in one commit."""
OPEN_MAX = 40


@dataclass(frozen=True)
class Trial:
    """How a trial is set up; with the seed, all that is needed to repeat it."""

    folder: Path
    url: str
    store: str
    seed: int
    kills: int
    workers: int
    minutes: float | None = None
    """Stop killing after this time, even if fewer were killed."""
    server_kills: int = 0
    """How often the server of the store is killed meanwhile."""

    @property
    def effects(self) -> Path:
        """What steps did."""
        return self.folder / "effects.jsonl"

    @property
    def acks(self) -> Path:
        """What clients were told."""
        return self.folder / "acks.jsonl"

    @property
    def tallies(self) -> Path:
        """What engines counted."""
        return self.folder / "tallies.jsonl"

    @property
    def again(self) -> str:
        """The command that repeats the trial."""
        minutes = "" if self.minutes is None else f" --minutes {self.minutes:g}"
        server_kills = f" --server-kills {self.server_kills}" if self.server_kills else ""
        return (
            f"python -m proof.kill --store {self.store} --kills {self.kills} --seed {self.seed} "
            f"--workers {self.workers}{server_kills}{minutes}"
        )


@dataclass(frozen=True)
class Kill:
    """One process that was killed."""

    at: float
    pid: int
    phase: str
    """What it was doing: `client`, `starting`, `recovering`, `in a step`, `between steps`."""


@dataclass(frozen=True)
class Freeze:
    """A worker that was stopped for longer than its lease."""

    at: float
    until: float
    pid: int


@dataclass
class Supervisor:
    """The parent of a trial's processes."""

    trial: Trial
    tell: Callable[[str], None]
    server: PostgresServer | None = None
    """The server of the store, if it has one."""
    kills: list[Kill] = field(default_factory=list)
    freezes: list[Freeze] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Processes that ended without being killed, with their last words."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.trial.seed)
        self._effects = Tail(self.trial.effects, Effect)
        self._effects_of: defaultdict[int, list[Effect]] = defaultdict(list)
        self._workers: list[ChildProcess] = []
        self._client: ChildProcess | None = None
        self._frozen: dict[int, float] = {}
        """When to thaw which worker."""
        self.outages = Outages(
            self.server,
            kills=self.trial.kills,
            server_kills=self.trial.server_kills,
            seed=self.trial.seed,
            tell=self.tell,
        )

    def __enter__(self) -> Supervisor:
        """Start everything."""
        self._workers = [self._new_worker(slot) for slot in range(self.trial.workers)]
        self._client = self._new_client()
        return self

    def __exit__(self, *_: object) -> None:
        """End everything, also after an error."""
        end_all([it for it in (*self._workers, self._client) if it is not None])

    def torment(self) -> None:
        """Kill until the trial has had enough."""
        self._await_first_run()
        began = time.monotonic()
        minutes = self.trial.minutes
        while len(self.kills) < self.trial.kills and (minutes is None or time.monotonic() - began < minutes * 60):
            time.sleep(self._random.uniform(*PAUSE_SECONDS))
            self.strike(self.next_strike(), self._random.randrange(len(self._workers)))
            self._thaw(until=time.time())
            self.outages.look(len(self.kills))
            self._note_lost()
            if self.lost:
                return
        if minutes is None:
            self.outages.finish()

    def drain(self, seconds: float) -> bool:
        """Let a last client see everything through; whether it did in time."""
        assert self._client is not None
        self._thaw(until=math.inf)
        self.outages.revive()
        self._client.kill()
        self._client = self._new_client("--drain")
        is_done = self._client.wait(seconds)
        self._note_lost()
        if not is_done:
            self.lost.append(
                "the last client did not see everything end; its log ends with:\n" + self._client.last_words()
            )
        return is_done and not self._client.exit_code

    def stop_workers(self) -> None:
        """Ask all workers to stop, and wait for them."""
        end_all(self._workers)
        self._note_lost()

    # -- What a trial of another kind changes ----------------------------------------------------------------

    def url_of(self, slot: int | None) -> str:
        """Where the worker in this slot, or the client, finds the store."""
        del slot
        return self.trial.url

    def surroundings(self) -> dict[str, str]:
        """What the environment of a process says about the trial."""
        return {effects.PLACE: str(self.trial.effects), tally.PLACE: str(self.trial.tallies)}

    def next_strike(self) -> str:
        """What happens next."""
        weights = [CLIENT_SHARE, ALL_SHARE, FREEZE_SHARE, 1 - CLIENT_SHARE - ALL_SHARE - FREEZE_SHARE]
        return self._random.choices(["client", "all", "freeze", "one"], weights)[0]

    def strike(self, what: str, slot: int) -> None:
        """Do something bad to somebody."""
        match what:
            case "client":
                self._kill_client()
            case "all":
                for each in range(len(self._workers)):
                    self._kill_worker(each)
            case "freeze":
                self._freeze(slot)
            case _:
                self._kill_worker(slot)
                while self._random.random() < AGAIN_SHARE:
                    time.sleep(self._random.uniform(*AGAIN_SECONDS))
                    self._kill_worker(slot)

    # -- How it is done --------------------------------------------------------------------------------------

    def _await_first_run(self) -> None:
        """Wait until there is something to lose: on a slow machine all kills could be over before the first start."""
        acks = Tail(self.trial.acks, Ack)
        deadline = time.monotonic() + BEGIN_SECONDS_MAX
        while not any(ack.op == "started" for ack in acks.lines) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            acks.look()

    def _freeze(self, slot: int) -> None:
        if slot not in self._frozen:
            self._workers[slot].freeze()
            self._frozen[slot] = time.time() + self._random.uniform(*FREEZE_SECONDS)
            self.freezes.append(Freeze(time.time(), self._frozen[slot], self._workers[slot].pid))
            self.tell(f"process {self._workers[slot].pid} is frozen for longer than its lease")

    def _thaw(self, *, until: float) -> None:
        for slot in [slot for slot, due in self._frozen.items() if due <= until]:
            del self._frozen[slot]
            self._workers[slot].thaw()

    def _kill_client(self) -> None:
        assert self._client is not None
        self._client.kill()
        self._record(self._client, "client")
        self._client = self._new_client()

    def _kill_worker(self, slot: int) -> None:
        worker = self._workers[slot]
        self._frozen.pop(slot, None)
        worker.kill()
        self._record(worker, self._phase(worker))
        self._workers[slot] = self._new_worker(slot)

    def _record(self, child: ChildProcess, phase: str) -> None:
        assert child.killed_at is not None
        self.kills.append(Kill(child.killed_at, child.pid, phase))
        self.tell(f"kill {len(self.kills)}: process {child.pid}, {phase}")

    def _phase(self, worker: ChildProcess) -> str:
        """What a worker was doing when it was killed, by what it had written down."""
        for line in self._effects.look():
            self._effects_of[line.pid].append(line)
        own = self._effects_of[worker.pid]
        if not own:
            return "starting"
        assert worker.killed_at is not None
        under_way = {(line.key, line.attempt) for line in own if line.mark == "begin"}
        under_way -= {(line.key, line.attempt) for line in own if line.mark in ("end", "failed")}
        if under_way:
            return "in a step"
        return "recovering" if worker.killed_at - own[0].at < FRESH_SECONDS else "between steps"

    def _note_lost(self) -> None:
        for child in (*self._workers, self._client):
            if child is not None and child.is_lost:
                self.lost.append(f"process {child.pid} ended with code {child.exit_code}:\n{child.last_words()}")

    def _new_worker(self, slot: int) -> ChildProcess:
        return ChildProcess(
            "proof.kill.worker",
            self.url_of(slot),
            str(LEASE_SECONDS),
            log=self.trial.folder / f"worker-{slot}.log",
            env=self.surroundings(),
        )

    def _new_client(self, *options: str) -> ChildProcess:
        return ChildProcess(
            "proof.kill.client",
            self.url_of(None),
            str(self.trial.acks),
            str(self.trial.seed),
            str(OPEN_MAX),
            *options,
            *([f"--work={LEASE_SECONDS}"] if self._random.random() < WORKING_CLIENT_SHARE else []),
            log=self.trial.folder / "client.log",
            env=self.surroundings(),
        )
