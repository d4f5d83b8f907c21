"""Does to the processes of a trial and to its store what `fault` has dealt.

What lasts for a while (a freeze, a silent line, a full disk, an outage) is ended when its time is over, while other
things happen. A fresh process is often killed again while it starts or recovers: recovery must survive recovery. Three
things are kept apart, because they would only make each other harmless: the server is not killed while its disk is
full, the disk is not filled while the server is away, and no frozen worker is asked to stop.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

from outlive.testing.line_file import Tail
from proof.storm.acks import Ack
from proof.storm.fault import deal
from proof.storm.outages import Outages
from proof.storm.places import Place, empty_log
from proof.storm.processes import LEASE_SECONDS, Processes
from proof.storm.trial import Trial

BEGIN_SECONDS_MAX = 30.0
LOOK_SECONDS = 0.05
PAUSE_SECONDS = (0.1, 1.2)
OUTAGE_PAUSE_SECONDS = (2.0, 6.0)
"""Between strikes while the store is away for long: processes are killed all the same, but there is little to see."""
AGAIN_SECONDS = (0.05, 0.3)
AGAIN_SHARE = 0.3
LONGER_THAN_LEASE_SECONDS = (LEASE_SECONDS * 1.1, LEASE_SECONDS * 1.8)
FULL_SECONDS = (1.0, LEASE_SECONDS * 1.5)
CUT_REQUESTS_MAX = 12
"""A line is cut after one of so many commits, from when that was decided on."""
AT_WORK_SHARE = 0.8
IDLE_KILL_SHARE = 0.3
"""How often a worker is killed that has nothing to lose. On a machine with much to do a process takes seconds to start:
a storm that does not wait for it kills hardly anything else."""


class Storm:
    """One trial."""

    def __init__(self, trial: Trial, place: Place, tell: Callable[[str], None]) -> None:
        self.trial, self.tell = trial, tell
        self._server, self._disk = place.server, place.disk
        self.processes = Processes(trial, place.server, tell)
        self.outages = Outages(trial, place, tell)
        self.faults: Counter[str] = Counter()
        """How often each thing was done."""
        self._random = random.Random(trial.seed)
        self._deck = deal(
            trial.mix,
            trial.kills,
            workers=trial.workers,
            has_line=place.server is not None,
            can_fill=place.disk is not None,
            seed=trial.seed,
        )
        self.dealt = frozenset(self._deck)
        """What is to be done at least once."""
        self._acts: dict[str, Callable[[int], bool]] = {
            "one": self._kill_one,
            "all": self._kill_all,
            "client": self._kill_client,
            "freeze": self._freeze,
            "clean": self._restart,
            "cut": self._cut,
            "deaf": self._go_deaf,
            "full": self._fill,
            "outage": lambda _: not self._is_full and self.outages.begin_long(trial.down_seconds),
        }
        self._due: list[tuple[float, Callable[[], None]]] = []
        """What ends when."""
        self._is_full = False

    def __enter__(self) -> Storm:
        """Start all processes."""
        self.processes.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """End everything."""
        self._end_due(until=float("inf"))
        self.outages.revive()
        self.processes.__exit__(*error)

    @property
    def cuts(self) -> int:
        """Commits that happened and were not answered."""
        return sum(line.cuts for line in self.processes.lines)

    def rage(self) -> None:
        """Deal out the deck, then kill until the trial has had enough, then let everything end by itself that lasts."""
        self._await_first_run()
        minutes = self.trial.minutes
        end = float("inf") if minutes is None else time.monotonic() + minutes * 60
        while self._has_more and time.monotonic() < end and not self.processes.lost:
            self._pass(self._random.uniform(*(OUTAGE_PAUSE_SECONDS if self.outages.is_long else PAUSE_SECONDS)))
            self._strike()
        while (self._due or self.outages.is_long or not self.processes.is_calm) and not self.processes.lost:
            self._pass(LOOK_SECONDS)
        if minutes is None and not self.processes.lost:
            self.outages.finish()

    def drain(self, seconds: float) -> bool:
        """Let everything finish; whether it did in time."""
        self._end_due(until=float("inf"))
        self.outages.revive()
        return self.processes.drain(seconds)

    @property
    def _has_more(self) -> bool:
        return bool(self._deck) or len(self.processes.kills) < self.trial.kills

    def _await_first_run(self) -> None:
        """Wait until there is something to lose: on a slow machine all kills could be over before the first start."""
        acks = Tail(self.trial.acks, Ack)
        deadline = time.monotonic() + BEGIN_SECONDS_MAX
        while not any(ack.op == "started" for ack in acks.lines) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            acks.look()

    def _pass(self, seconds: float) -> None:
        """Let time pass, and end what is over."""
        until = time.monotonic() + seconds
        while True:
            self._end_due(until=time.monotonic())
            if not self._is_full:
                self.outages.look(len(self.processes.kills))
            self.processes.look()
            left = until - time.monotonic()
            if left <= 0 or self.processes.lost:
                return
            time.sleep(min(LOOK_SECONDS, left))

    def _end_due(self, *, until: float) -> None:
        for entry in [entry for entry in self._due if entry[0] <= until]:
            self._due.remove(entry)
            entry[1]()

    def _later(self, seconds: float, end: Callable[[], None]) -> None:
        self._due.append((time.monotonic() + seconds, end))

    # -- Strikes ---------------------------------------------------------------------------------------------

    def _strike(self) -> None:
        """Do the next thing, if it makes sense at this moment; else put it back."""
        what = self._deck.pop() if self._deck else "one"
        if self._acts[what](self._choose()):
            self.faults[what] += 1
        else:
            self._deck.insert(self._random.randint(0, len(self._deck)), what)

    def _choose(self) -> int:
        """Which worker it hits: mostly one that is at work, for a process that starts has little to lose."""
        slots = range(self.trial.workers)
        at_work = [slot for slot in slots if self.processes.is_at_work(slot)]
        return self._random.choice(at_work if at_work and self._random.random() < AT_WORK_SHARE else slots)

    def _kill_one(self, slot: int) -> bool:
        """Not a frozen one: killed before it wakes up, it makes no zombie. Seldom one that has not begun to work."""
        if self.processes.is_frozen(slot):
            return False
        if not self.processes.is_at_work(slot) and self._random.random() > IDLE_KILL_SHARE:
            return False
        self.processes.kill_worker(slot)
        while self._random.random() < AGAIN_SHARE:
            time.sleep(self._random.uniform(*AGAIN_SECONDS))
            self.processes.kill_worker(slot)
        return True

    def _kill_all(self, _: int) -> bool:
        for slot in range(self.trial.workers):
            self.processes.kill_worker(slot)
        return True

    def _kill_client(self, _: int) -> bool:
        self.processes.kill_client()
        return True

    def _freeze(self, slot: int) -> bool:
        """Not one that has just started: a worker that owns nothing yet makes no zombie."""
        if self.outages.is_long or not self.processes.is_at_work(slot):
            return False
        self.processes.freeze(slot, self._random.uniform(*LONGER_THAN_LEASE_SECONDS))
        return True

    def _restart(self, slot: int) -> bool:
        if self.processes.is_frozen(slot):
            return False
        self.processes.restart(slot)
        return True

    def _cut(self, slot: int) -> bool:
        """The line of a worker, or of the client, is cut between a commit and its answer."""
        if self.outages.is_long:
            return False
        lines = self.processes.lines
        self._random.choice([lines[slot], lines[slot], lines[-1]]).cut_commit(self._random.randint(1, CUT_REQUESTS_MAX))
        return True

    def _go_deaf(self, slot: int) -> bool:
        """A worker lives, and nothing gets through to the store or back, for longer than its lease."""
        line = self.processes.lines[slot]
        if self.outages.is_long or self.processes.is_frozen(slot) or not line.hearing.is_set():
            return False
        line.go_deaf()
        self.tell(f"nothing gets through to process {self.processes.workers[slot].pid}")
        self._later(self._random.uniform(*LONGER_THAN_LEASE_SECONDS), line.come_back)
        return True

    def _fill(self, _: int) -> bool:
        """No room on the disk of the store for a while."""
        if self._is_full or self.outages.is_long or (self._server is not None and not self._server.is_running):
            return False
        if not any(self.processes.is_at_work(slot) for slot in range(self.trial.workers)):
            return False  # No process would notice.
        assert self._disk is not None
        if self._server is None:
            empty_log(self.trial.url)
        if not self._disk.fill([worker.pid for worker in self.processes.workers]):
            self._disk.free()
            return False
        self._is_full = True
        self.tell("the disk is full")
        self._later(self._random.uniform(*FULL_SECONDS), self._free)
        return True

    def _free(self) -> None:
        assert self._disk is not None
        self._disk.free()
        self._is_full = False
        self.tell("the disk has room again")
        if self._server is not None and not self._server.is_running:
            # A server that cannot write its log ends, and is started again by those who watch it.
            self.faults["server gave up"] += 1
            self._server.kill()
            self._server.start()
