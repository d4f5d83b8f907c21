"""The supervisor of a chaos trial: it does to a fleet what `fault` has dealt.

What lasts for a while (a freeze, a silent line, a full disk, an outage) is ended when its time is over, while other
things happen. Three things are kept apart, because they would only make each other harmless: the server is not killed
while its disk is full, the disk is not filled while the server is away, and no frozen worker is asked to stop.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from outlive.testing.child_process import ChildProcess, end_all
from outlive.testing.proxy import Proxy
from proof.chaos.absence import Absence, empty_log
from proof.chaos.disk import Disk
from proof.chaos.fault import deal
from proof.chaos.trial import Stop, StormTrial
from proof.kill import effects
from proof.kill.supervisor import LEASE_SECONDS, PAUSE_SECONDS, Supervisor
from proof.kill.witness import SCHEME

CUT_REQUESTS_MAX = 12
"""A line is cut after one of so many commits, from when that was decided on."""
DEAF_SECONDS = (LEASE_SECONDS * 1.1, LEASE_SECONDS * 1.8)
FULL_SECONDS = (1.0, LEASE_SECONDS * 1.5)
STOP_SECONDS_MAX = 20.0
"""How long a worker that was sent SIGTERM may take to stop, whatever its store does: twice what is promised (a grace
of 5, and 5 more for the store), because the machine is busy."""
OUTAGE_PAUSE_SECONDS = (2.0, 6.0)
"""Between strikes while the store is away for long: processes are killed all the same, but there is little to see."""
AT_WORK_SECONDS = 2.0
"""After which a process has begun and has runs."""
AT_WORK_SHARE = 0.8
LOOK_SECONDS = 0.05
TERMINATED = -15
"""How a process ends that had not even begun to listen to signals."""


@dataclass
class Storm(Supervisor):
    """The parent of everything in a chaos trial."""

    disk: Disk | None = None
    """The disk of the store, if it can be filled."""
    faults: Counter[str] = field(default_factory=Counter)
    """How often each thing was done."""
    stops: list[Stop] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        assert isinstance(self.trial, StormTrial)
        self.down_seconds = self.trial.down_seconds
        self._deck = deal(
            self.trial.kills,
            workers=self.trial.workers,
            has_line=self.server is not None,
            can_fill=self.disk is not None,
            seed=self.trial.seed,
        )
        self._due: list[tuple[float, Callable[[], None]]] = []
        """What ends when."""
        self._leaving: list[tuple[ChildProcess, float]] = []
        self._is_full = False
        self._absence = Absence(self.trial.url, self.server)
        self._stack = ExitStack()
        self._proxies: list[Proxy] = []
        self._witness: ChildProcess | None = None
        self._socket = Path()

    # -- Life ------------------------------------------------------------------------------------------------

    def __enter__(self) -> Storm:
        """Start the witness and the lines, then everything else."""
        folder = Path(tempfile.mkdtemp(prefix="outlive-"))  # The path of a socket must be short.
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self._socket = folder / "witness"
        witness = ChildProcess(
            "proof.kill.witness",
            str(self._socket),
            str(self.trial.effects),
            log=self.trial.folder / "witness.log",
        )
        self._witness = witness
        self._stack.callback(end_all, [witness])
        assert witness.read_line(), f"the witness does not start: {witness.last_words()}"
        if self.server is not None:
            # The last one is the client's.
            lines = [Proxy("127.0.0.1", self.server.port) for _ in range(self.trial.workers + 1)]
            self._proxies = [self._stack.enter_context(line) for line in lines]
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """End everything, the witness last."""
        try:
            self._end_due(until=float("inf"))
            super().__exit__(*error)
            end_all([child for child, _ in self._leaving])
        finally:
            self._stack.close()

    def torment(self) -> None:
        """Deal out the deck, then kill until the trial has had enough, then let everything end by itself that lasts."""
        while (self._deck or len(self.kills) < self.trial.kills) and not self.lost:
            self._pass(self._random.uniform(*(OUTAGE_PAUSE_SECONDS if self._is_away else PAUSE_SECONDS)))
            self.strike(self.next_strike(), self._choose())
        while (self._due or self._frozen or self._leaving) and not self.lost:
            self._pass(LOOK_SECONDS)
        self.outages.finish()

    def drain(self, seconds: float) -> bool:
        """Let everything finish."""
        self._end_due(until=float("inf"))
        return super().drain(seconds)

    def stop_workers(self) -> None:
        """Ask all workers to stop, and see that the witness has heard everything."""
        super().stop_workers()
        assert self._witness is not None
        if self._witness.exit_code is not None:
            self.lost.append(f"the witness ended:\n{self._witness.last_words()}")

    def _choose(self) -> int:
        """Whom it hits: mostly somebody who is at work, for a process that starts has little to lose."""
        slots = range(len(self._workers))
        at_work = [slot for slot in slots if self._is_at_work(slot)]
        return self._random.choice(at_work if at_work and self._random.random() < AT_WORK_SHARE else slots)

    def _is_at_work(self, slot: int) -> bool:
        return slot not in self._frozen and time.time() - self._workers[slot].started_at > AT_WORK_SECONDS

    def _pass(self, seconds: float) -> None:
        """Let time pass, and end what is over."""
        until = time.monotonic() + seconds
        while True:
            self._end_due(until=time.monotonic())
            self._thaw(until=time.time())
            if not self._is_full and not self._is_away:
                self.outages.look(len(self.kills))
            self._see_off()
            self._note_lost()
            left = until - time.monotonic()
            if left <= 0 or self.lost:
                return
            time.sleep(min(LOOK_SECONDS, left))

    def _end_due(self, *, until: float) -> None:
        for entry in [entry for entry in self._due if entry[0] <= until]:
            self._due.remove(entry)
            entry[1]()

    def _later(self, seconds: float, end: Callable[[], None]) -> None:
        self._due.append((time.monotonic() + seconds, end))

    # -- What processes are told -----------------------------------------------------------------------------

    def url_of(self, slot: int | None) -> str:
        """Through the line of this slot, if there are lines."""
        if self.server is None:
            return self.trial.url
        proxy = self._proxies[-1 if slot is None else slot]
        return self.trial.url.replace(f":{self.server.port}/", f":{proxy.port}/")

    def surroundings(self) -> dict[str, str]:
        """Effects go to the witness."""
        return super().surroundings() | {effects.PLACE: f"{SCHEME}{self._socket}"}

    # -- Strikes ---------------------------------------------------------------------------------------------

    def next_strike(self) -> str:
        """The next one of the deck."""
        return self._deck.pop() if self._deck else "one"

    def strike(self, what: str, slot: int) -> None:
        """Do it, if it makes sense at this moment; else put it back."""
        acts = {"clean": self._restart, "cut": self._cut, "deaf": self._go_deaf, "full": self._fill}
        if what == "outage":
            is_done = self._go_away()
        elif what in acts:
            is_done = acts[what](slot)
        else:
            is_done = self._is_worth(what, slot)
            if is_done:
                super().strike(what, slot)
        if is_done:
            self.faults[what] += 1
        else:
            self._deck.insert(self._random.randint(0, len(self._deck)), what)

    def _is_worth(self, what: str, slot: int) -> bool:
        """A worker that owns nothing yet makes no zombie, and one that is killed before it wakes up does not either."""
        if what == "freeze":
            return self._is_at_work(slot) and not self._is_away
        return what != "one" or slot not in self._frozen

    def _restart(self, slot: int) -> bool:
        """SIGTERM; another worker takes the place at once, as in a rolling deploy."""
        worker = self._workers[slot]
        if slot in self._frozen:
            return False
        worker.terminate()
        self.tell(f"process {worker.pid} is asked to stop")
        self._leaving.append((worker, time.time()))
        self._workers[slot] = self._new_worker(slot)
        return True

    def _see_off(self) -> None:
        """Note those who have stopped, and how."""
        for entry in list(self._leaving):
            worker, since = entry
            seconds = time.time() - since
            if worker.exit_code is None and seconds < STOP_SECONDS_MAX:
                continue
            self._leaving.remove(entry)
            code = worker.exit_code
            if code in (0, TERMINATED):
                self.stops.append(Stop(since, worker.pid, seconds, code))
            else:
                how = "did not stop" if code is None else f"ended with code {code}"
                self.lost.append(f"process {worker.pid} was sent SIGTERM and {how}:\n{worker.last_words()}")
            end_all([worker])

    def _cut(self, slot: int) -> bool:
        """The line of a worker, or of the client, is cut between a commit and its answer."""
        if self._is_away:
            return False
        proxy = self._random.choice([self._proxies[slot], self._proxies[slot], self._proxies[-1]])
        proxy.cut_commit(self._random.randint(1, CUT_REQUESTS_MAX))
        return True

    @property
    def cuts(self) -> int:
        """Commits that happened and were not answered."""
        return sum(proxy.cuts for proxy in self._proxies)

    def _go_deaf(self, slot: int) -> bool:
        """A worker lives, and nothing gets through to the store or back, for longer than its lease."""
        proxy = self._proxies[slot]
        if self._is_away or slot in self._frozen or not proxy.hearing.is_set():
            return False
        proxy.go_deaf()
        self.tell(f"nothing gets through to process {self._workers[slot].pid}")
        self._later(self._random.uniform(*DEAF_SECONDS), proxy.come_back)
        return True

    def _fill(self, slot: int) -> bool:
        """No room on the disk of the store for a while."""
        del slot
        if self._is_full or self._is_away or (self.server is not None and not self.server.is_running):
            return False
        assert self.disk is not None
        if self.server is None:
            empty_log(self.trial.url)
        if not self.disk.fill([worker.pid for worker in self._workers]):
            self.disk.free()
            return False
        self._is_full = True
        self.tell("the disk is full")
        self._later(self._random.uniform(*FULL_SECONDS), self._free)
        return True

    def _free(self) -> None:
        assert self.disk is not None
        self.disk.free()
        self._is_full = False
        self.tell("the disk has room again")
        if self.server is not None and not self.server.is_running:
            # A server that cannot write its log ends, and is started again by those who watch it.
            self.faults["server gave up"] += 1
            self.server.kill()
            self.server.start()

    # -- The long outage -------------------------------------------------------------------------------------

    def _go_away(self) -> bool:
        """The store is away for long."""
        if self._is_full or not self._absence.begin():
            return False
        self.tell(f"the store is away for {self.down_seconds:g} s")
        self._later(self.down_seconds, self._come_back)
        return True

    def _come_back(self) -> None:
        self._absence.end()
        self.tell("the store is back")

    @property
    def _is_away(self) -> bool:
        """Whether the long outage lasts."""
        return self._absence.lasts
