"""One seed from its first to its last instant: faults and work, then no more faults, then everything must end well."""

from __future__ import annotations

import gc
import logging
import traceback
from collections import Counter
from dataclasses import dataclass, field

from outlive._kernel.model import Limits, Run, RunStatus
from outlive._kernel.model.pause import EVERYTHING, PAUSED, PAUSES_CELL, pauses_in
from outlive.errors.step import UNDO_FAILED
from outlive.telemetry import log
from proof.simulation.judge import Judge
from proof.simulation.ledger import Ledger
from proof.simulation.loop import SimulatedLoop
from proof.simulation.nemesis import Nemesis
from proof.simulation.plan import ATTEMPTS_MAX, Plan, draw
from proof.simulation.play import registry
from proof.simulation.process import Parts, Process
from proof.simulation.program import each_order
from proof.simulation.retention import hurried, rules_of
from proof.simulation.server import Server
from proof.simulation.users import Users
from proof.simulation.weather import Weather
from proof.simulation.world import World

HEALED_SECONDS_MAX = 240.0
"""After the last fault everything must have ended by then."""
LOOK_SECONDS = 2.0
RESUMED = ("quarantined", UNDO_FAILED)
"""Why a run may be parked."""
RESTART_SECONDS_MAX = 3.0


@dataclass(slots=True)
class Story:
    """What became of one seed."""

    seed: int
    violations: list[str]
    sometimes: Counter[str]
    trace: list[str] = field(default_factory=list)
    """Only if something was violated, or if it was asked for."""
    seconds: float = 0.0
    """How much time passed in it."""
    events: int = 0
    runs: int = 0


class Episode:
    """The world of one seed."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.world = world = World(plan.seed)
        self.weather = Weather(world, plan.rates, plan.fixed)
        self.server = Server(world, rings=plan.rings, keeping=plan.keeping)
        self.ledger = Ledger(world, self.server.nonces, self.server.is_live, self.server.paused_for)
        self.server.is_stepping = self.ledger.is_stepping
        self.ledger.begun_in_queue = self._check_queues
        self.server.cell_changed = self.ledger.limits.changed
        self.parts = Parts(
            world=world,
            weather=self.weather,
            server=self.server,
            ledger=self.ledger,
            lease_seconds=plan.lease_seconds,
            poll_seconds=plan.poll_seconds,
            limits=Limits(**({"attempts_max": ATTEMPTS_MAX, "processes_max": 1} | plan.limits)),
            replayed_rows=plan.replayed_rows,
            overlaps=plan.overlaps,
            sees_dead=plan.sees_dead,
            false_alarms=plan.false_alarms,
            is_named=plan.is_named,
            retention=rules_of(plan.keeping),
            has_schedules=bool(plan.schedules),
        )
        self._lives: Counter[int] = Counter()
        self._graves: list[Process] = []
        self.workers = [self._new_worker(place) for place in range(plan.workers)]
        self.client = Process(self.parts, "client", registry(has_rare=True), has_worker=False)
        world.killed = self._killed
        self.users = Users(world, self.ledger, lambda: [*self.workers, self.client], self.server.roots)
        self.server.looked = self.users.schedulers.check
        self.judge = Judge(world, self.server, self.ledger, self.users)
        self.nemesis = Nemesis(self.parts, self.workers, self._replace)

    def _new_worker(self, place: int) -> Process:
        self._lives[place] += 1
        # The first one has everything: a run that no worker can run waits for ever, and rightly so.
        has_rare = place == 0 or (place + self.world.seed) % 2 == 0
        return Process(self.parts, f"w{place}.{self._lives[place]}", registry(has_rare=has_rare))

    # -- Life and death --------------------------------------------------------------------------------------

    def _killed(self, loop: SimulatedLoop) -> None:
        for worker in self.workers:
            if worker.loop is loop:
                worker.kill("its fuse")
                self._replace(worker)

    def _replace(self, worker: Process) -> None:
        self.users.died(worker.loop)
        self._graves.append(worker)
        place = self.workers.index(worker)

        def boot() -> None:
            self.workers[place] = self._new_worker(place)
            self.workers[place].boot()

        self.world.after(self.world.random.random() * RESTART_SECONDS_MAX, boot)

    def run(self) -> Story:
        """Play it."""
        with self.world.interruption.listening():
            return self._run()

    def _run(self) -> Story:
        handler = _Listener(self.world)
        was_collecting = gc.isenabled()
        gc.disable()
        log.addHandler(handler)
        was_propagating, log.propagate = log.propagate, False
        try:
            with hurried(self.plan.keeping):
                self._play()
        except Exception as error:
            # A store that is asked for what no store can do, a book that makes no sense: a bug here or in the engine.
            self.world.complain(f"the simulation broke off: {error!r} in {_place(error)}")
        finally:
            log.propagate = was_propagating
            log.removeHandler(handler)
            self._bury()
            if was_collecting:
                gc.enable()
        world = self.world
        return Story(
            seed=world.seed,
            violations=world.violations,
            sometimes=world.sometimes,
            trace=[f"{at:12.6f} {where:>8}  {text % values}" for at, where, text, values in world.trace],
            seconds=world.seconds,
            events=sum(len(book.events) for book in self.server.books.values()),
            runs=len(self.server.state.runs),
        )

    def _play(self) -> None:
        world = self.world
        for process in [*self.workers, self.client]:
            process.boot()
        for case in self.plan.cases:
            self.users.open(case)
        for scheduled in self.plan.schedules:
            self.users.schedulers.open(scheduled)
        for purge in self.plan.purges:
            self.users.purgers.open(purge)
        if self.plan.keeping is not None:
            self.users.keepers.open(self.plan.keeping)
        for pause in self.plan.pauses:
            self.users.pausers.open_whole(pause)
        self.nemesis.expect(self.plan.strikes)
        world.run_until(self.plan.fault_seconds)
        self.weather.heal()
        self.nemesis.heal()
        self.ledger.is_poisonous = False
        self._look()
        kept = 0.0 if self.plan.keeping is None else self.plan.keeping.kept_seconds + self.plan.keeping.grace_seconds
        world.run_until(self.plan.fault_seconds + HEALED_SECONDS_MAX + kept, lambda: self.judge.is_over)
        if not world.violations:
            self.judge.judge(self.plan.cases)

    def _look(self) -> None:
        """Now and then an operator lets runs go on that were quarantined, or whose undo has failed; and what was paused
        by a request that came behind the one to resume it."""
        reasons = (*RESUMED, PAUSED) if self._may_come_late else RESUMED
        for run in self._roots():
            if run.status is RunStatus.PARKED and run.reason.startswith(reasons) and not self._is_to_resume(run):
                self.users.pausers.resume(run.id)
        for name in pauses_in(self.server.state.cells.get(PAUSES_CELL)) if self._may_come_late else ():
            self.users.pausers.resume_whole("" if name == EVERYTHING else name)
        if not pauses_in(self.server.state.cells.get(PAUSES_CELL)):
            patience = self.plan.lease_seconds + 2 * self.plan.poll_seconds + LOOK_SECONDS
            runs_active_max = self.plan.limits.get("runs_active_max", Limits().runs_active_max)
            self.server.queues.look(
                patience_seconds=patience, workers=len(self.workers), runs_active_max=runs_active_max
            )
        self.world.after(LOOK_SECONDS, self._look)

    def _check_queues(self) -> None:
        """No more runs of a queue are at work, in the hands of owners that live, than it allows."""
        at_work = [run for run in self.server.roots() if run.queue and self._is_at_work(run)]
        self.server.queues.check_work(at_work)

    def _is_at_work(self, run: Run) -> bool:
        owner = self.server.owner_of(run)
        is_owned = owner is not None and self.server.is_live(owner)
        return is_owned and owner is not None and self.ledger.is_stepping(owner, self.server.books[run.journal])

    def _is_to_resume(self, run: Run) -> bool:
        return f"resume {run.id}" in self.users.open_requests

    @property
    def _may_come_late(self) -> bool:
        """Whether a request may come after one that was sent later: it was given up, or its user's process died."""
        is_mortal = any(strike.kind in {"kill", "stop"} for strike in self.plan.strikes)
        orders = [order for case in self.plan.cases for order in each_order(case.program)]
        return is_mortal or bool(self.plan.rates.late) or any(order[0] == "poison" for order in orders)

    def _roots(self) -> list[Run]:
        return [tree.root for tree in self.server.state.trees.values()]

    def _bury(self) -> None:
        """Discard everything, and log nothing: no process uses it any more."""
        log.disabled = True
        for process in [*self._graves, *self.workers, self.client]:
            process.bury()
        log.disabled = False


class _Listener(logging.Handler):
    """What the engines log goes into the story; what they did not expect is a violation."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        """See `Handler`."""
        message = record.getMessage()
        self._world.note("log", "%s", message)
        if record.exc_info is not None and record.exc_info[1] is not None:
            self._world.complain(f"an engine met what it did not expect: {message}: {record.exc_info[1]!r}")


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"


def simulate(seed: int | Plan) -> Story:
    """Play one seed, or a plan of one's own."""
    story = play(draw(seed) if isinstance(seed, int) else seed)
    collect()
    return story


def play(plan: Plan) -> Story:
    """Play a plan; what is left of it lies in memory until `collect`."""
    episode = Episode(plan)
    story = episode.run()
    # What the workflows of dead processes have to say when they are thrown away is of no interest.
    log.disabled = True
    del episode
    log.disabled = False
    return story


def collect() -> None:
    """Throw away what is left of simulated processes."""
    log.disabled = True
    try:
        gc.collect()
    finally:
        log.disabled = False
