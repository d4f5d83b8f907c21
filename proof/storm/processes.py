"""The processes of a trial: started, killed, frozen, asked to stop, and never left behind.

All of them are direct children, so that a killed one is reaped. Each worker, and the client, has a line of its own to
the store if that has a server. What steps did is written down by a witness.
"""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from outlive.testing.child_process import ChildProcess, end_all
from outlive.testing.line_file import Tail
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.proxy import Proxy
from proof.storm import effects, tally
from proof.storm.effects import Effect
from proof.storm.trial import Freeze, Kill, Stop, Trial
from proof.storm.witness import SCHEME

LEASE_SECONDS = 2.0
FRESH_SECONDS = 0.3
START_SECONDS_MAX = 20.0
"""A storm does not wait for ever for a worker that begins nothing: something else has to find that out."""
WORKING_CLIENT_SHARE = 0.5
"""Clients that have a worker of their own: then a run is created and owned in one commit."""
OPEN_MAX = 40
FREEZE_TRIES = 60
HEARD_SECONDS = 0.01
"""After which the witness has written down what a worker did before it was stopped."""
STOP_SECONDS_MAX = 20.0
"""How long a worker that was sent SIGTERM may take to stop, whatever its store does: twice what is promised (a grace
of 5, and 5 more for the store), because the machine is busy."""
TERMINATED = -15
"""How a process ends that had not even begun to listen to signals."""


class Processes:
    """The workers, the client and the witness of one trial."""

    def __init__(self, trial: Trial, server: PostgresServer | None, tell: Callable[[str], None]) -> None:
        self._trial = trial
        self._server = server
        self._tell = tell
        self._random = random.Random(f"clients/{trial.seed}")
        self._effects = Tail(trial.effects, Effect)
        self._effects_of: defaultdict[int, list[Effect]] = defaultdict(list)
        self.workers: list[ChildProcess] = []
        self.lines: list[Proxy] = []
        """To the store, one for each worker, and the client's behind them; none if the store has no server."""
        self._client: ChildProcess | None = None
        self._witness: ChildProcess | None = None
        self._socket = Path()
        self._frozen: dict[int, float] = {}
        """When to thaw which worker."""
        self._leaving: list[tuple[ChildProcess, float]] = []
        """Workers that were asked to stop, and when."""
        self._stack = ExitStack()
        self.kills: list[Kill] = []
        self.freezes: list[Freeze] = []
        self.stops: list[Stop] = []
        self.lost: list[str] = []
        """Processes that ended without being killed, with their last words."""

    # -- Life ------------------------------------------------------------------------------------------------

    def __enter__(self) -> Processes:
        """Start the witness and the lines, then everything else."""
        folder = Path(tempfile.mkdtemp(prefix="outlive-"))  # The path of a socket must be short.
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self._socket = folder / "witness"
        witness = self._start("proof.storm.witness", str(self._socket), str(self._trial.effects), log="witness")
        self._witness = witness
        self._stack.callback(end_all, [witness])
        assert witness.read_line(), f"the witness does not start: {witness.last_words()}"
        if self._server is not None:
            lines = [Proxy("127.0.0.1", self._server.port) for _ in range(self._trial.workers + 1)]
            self.lines = [self._stack.enter_context(line) for line in lines]
        self.workers = [self._new_worker(slot) for slot in range(self._trial.workers)]
        self._client = self._new_client()
        return self

    def __exit__(self, *_: object) -> None:
        """End everything, also after an error; the witness last."""
        leaving = [child for child, _ in self._leaving]
        try:
            end_all([it for it in (*self.workers, self._client, *leaving) if it is not None])
        finally:
            self._stack.close()

    def look(self) -> None:
        """Thaw workers whose time has come, and note processes that have ended."""
        self.thaw(until=time.time())
        self._see_off()
        self._note_lost()

    def drain(self, seconds: float) -> bool:
        """Let a last client see everything through; whether it did in time."""
        assert self._client is not None
        self.thaw(until=math.inf)
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
        """Ask all workers to stop, wait for them, and see that the witness has heard everything."""
        end_all(self.workers)
        self._note_lost()
        assert self._witness is not None
        if self._witness.exit_code is not None:
            self.lost.append(f"the witness ended:\n{self._witness.last_words()}")

    @property
    def is_calm(self) -> bool:
        """Whether no worker is frozen, and none is about to stop."""
        return not self._frozen and not self._leaving

    def is_frozen(self, slot: int) -> bool:
        """Whether this worker stands still."""
        return slot in self._frozen

    def is_at_work(self, slot: int) -> bool:
        """Whether this worker has something to lose: it has begun a step, or has had very long for that."""
        if slot in self._frozen:
            return False
        self._hear()
        worker = self.workers[slot]
        is_old = time.time() - worker.started_at > START_SECONDS_MAX
        return is_old or any(line.mark == "begin" for line in self._effects_of[worker.pid])

    # -- What is done to them --------------------------------------------------------------------------------

    def kill_client(self) -> None:
        """Kill the client, and start another."""
        assert self._client is not None
        self._client.kill()
        self._record(self._client, "client")
        self._client = self._new_client()

    def kill_worker(self, slot: int) -> None:
        """Kill a worker, and start another."""
        worker = self.workers[slot]
        self._frozen.pop(slot, None)
        worker.kill()
        self._record(worker, self._phase(worker))
        self.workers[slot] = self._new_worker(slot)

    def freeze(self, slot: int, seconds: float) -> None:
        """Let a worker stand still for so long, if possible in the middle of a step on a thread.

        Such a step cannot be cancelled. It ends when the worker goes on, though its run has another owner by then: the
        one thing that a fence must not hear of. By chance alone many a long trial would not have it.
        """
        worker = self.workers[slot]
        wanted = self._trial.mix.thread_step
        for _ in range(FREEZE_TRIES if wanted else 0):
            worker.freeze()
            time.sleep(HEARD_SECONDS)
            if wanted in {line.step for line in self._under_way(worker)}:
                break
            worker.thaw()
            time.sleep(HEARD_SECONDS)
        else:
            worker.freeze()
        self._frozen[slot] = time.time() + seconds
        self.freezes.append(Freeze(time.time(), self._frozen[slot], worker.pid))
        self._tell(f"process {worker.pid} is frozen for longer than its lease")

    def thaw(self, *, until: float) -> None:
        """Let the workers go on that were frozen until then."""
        for slot in [slot for slot, due in self._frozen.items() if due <= until]:
            del self._frozen[slot]
            self.workers[slot].thaw()

    def restart(self, slot: int) -> None:
        """SIGTERM; another worker takes the place at once, as in a rolling deploy."""
        worker = self.workers[slot]
        worker.terminate()
        self._tell(f"process {worker.pid} is asked to stop")
        self._leaving.append((worker, time.time()))
        self.workers[slot] = self._new_worker(slot)

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

    def _record(self, child: ChildProcess, phase: str) -> None:
        assert child.killed_at is not None
        self.kills.append(Kill(child.killed_at, child.pid, phase))
        self._tell(f"kill {len(self.kills)}: process {child.pid}, {phase}")

    def _phase(self, worker: ChildProcess) -> str:
        """What a worker was doing when it was killed, by what it had written down."""
        under_way = self._under_way(worker)
        own = self._effects_of[worker.pid]
        if not own:
            return "starting"
        assert worker.killed_at is not None
        if under_way:
            return "in a step"
        return "recovering" if worker.killed_at - own[0].at < FRESH_SECONDS else "between steps"

    def _under_way(self, worker: ChildProcess) -> list[Effect]:
        """The steps that a worker has begun and not ended, by what it has written down."""
        self._hear()
        own = self._effects_of[worker.pid]
        over = {(line.key, line.attempt) for line in own if line.mark in ("end", "failed")}
        return [line for line in own if line.mark == "begin" and (line.key, line.attempt) not in over]

    def _hear(self) -> None:
        """Take in what the steps have written down."""
        for line in self._effects.look():
            self._effects_of[line.pid].append(line)

    def _note_lost(self) -> None:
        for child in (*self.workers, self._client):
            if child is not None and child.is_lost:
                self.lost.append(f"process {child.pid} ended with code {child.exit_code}:\n{child.last_words()}")

    # -- How they are started --------------------------------------------------------------------------------

    def _new_worker(self, slot: int) -> ChildProcess:
        return self._start(
            f"{self._trial.mix.programs}.worker", self._url_of(slot), str(LEASE_SECONDS), log=f"worker-{slot}"
        )

    def _new_client(self, *options: str) -> ChildProcess:
        return self._start(
            f"{self._trial.mix.programs}.client",
            self._url_of(-1),
            str(self._trial.acks),
            str(self._trial.seed),
            str(OPEN_MAX),
            *options,
            *([f"--work={LEASE_SECONDS}"] if self._random.random() < WORKING_CLIENT_SHARE else []),
            log="client",
        )

    def _start(self, program: str, *args: str, log: str) -> ChildProcess:
        return ChildProcess(
            program,
            *args,
            log=self._trial.folder / f"{log}.log",
            env={effects.PLACE: f"{SCHEME}{self._socket}", tally.PLACE: str(self._trial.tallies)},
        )

    def _url_of(self, slot: int) -> str:
        """Where a process finds the store: through its line, if there are lines."""
        if self._server is None:
            return self._trial.url
        return self._trial.url.replace(f":{self._server.port}/", f":{self.lines[slot].port}/")
