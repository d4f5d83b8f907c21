"""What a test sees of a fleet: which steps were executed, by whom, and where each of them stands."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import apsw
import msgspec

import outlive
from outlive._kernel.store.contract import Beat
from outlive.errors import StoreUnavailableError
from outlive.events import RunClaimed, StepSucceeded
from outlive.testing.child_process import STOP_SECONDS_MAX, ChildProcess
from outlive.testing.fsck import check_store
from tests.engine.support import PATIENCE_SECONDS, Place, events_of, in_time, until
from tests.fleet.program import CONTROL, DIE, WORKER

ROOT = Path(__file__).parents[2]


class Call(msgspec.Struct, frozen=True):
    """One execution of a step."""

    worker: str
    pid: int
    run: str
    step: str
    attempt: int
    epoch: int
    key: str


class Visit:
    """A step that has been begun and waits for the test."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def go_on(self) -> None:
        """Let it return."""
        if not self.answer.done():
            self.answer.set_result(b"go\n")

    def die(self) -> None:
        """Let it end its process."""
        self.answer.set_result(DIE)


@dataclass
class Gate:
    """Where the executions of one step wait."""

    arrived: asyncio.Queue[Visit] = field(default_factory=asyncio.Queue)
    waiting: list[Visit] = field(default_factory=list)
    is_open: bool = False

    def open(self) -> None:
        """Let everybody pass, from now on."""
        self.is_open = True
        for visit in self.waiting:
            visit.go_on()


class World:
    """A fleet over one store; whatever is left of it at the end is killed."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place, self.folder = place, folder
        self.program = "tests.fleet.program"
        self.calls: list[Call] = []
        self.workers: list[ChildProcess] = []
        self._gates: dict[str, Gate] = {}
        self._port = 0
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._hear, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            if worker.exit_code is None:
                worker.kill()
        for gate in self._gates.values():
            gate.open()
        assert self._server is not None
        self._server.close()

    # -- Workers ---------------------------------------------------------------------------------------------

    async def worker(self, name: str, *options: str) -> ChildProcess:
        """A worker process that has begun to work."""
        paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
        worker = ChildProcess(
            self.program,
            self.place.url,
            name,
            *options,
            log=self.folder / f"{name}.log",
            env={CONTROL: str(self._port), WORKER: name, **paths},
        )
        self.workers.append(worker)
        assert b"ready\n" == await in_time(asyncio.to_thread(worker.read_line)), worker.last_words()
        return worker

    async def freeze(self, worker: ChildProcess, name: str) -> None:
        """Stop a worker where it stands, shortly before its lease has run out.

        Its leases are long, so that none is ever lost because the machine is busy; so its last beat is ours. It
        stands between two writes: otherwise, on SQLite, no other process could write.
        """
        with _writing(self.place.path):
            worker.freeze()
        store = self.place.store()
        await store.open()
        try:
            (session,) = [session for session in await store.list_workers() if session.name == name]
            await asyncio.to_thread(_beat_for_the_last_time, store.open_beat(session.id))
        finally:
            await store.close()

    async def lose(self, worker: ChildProcess, name: str, *, way: str) -> None:
        """Let a worker vanish: `killed`, which others on its machine can see, or `frozen`, which they cannot."""
        if way == "killed":
            worker.kill()
        else:
            await self.freeze(worker, name)

    async def stop(self, worker: ChildProcess) -> None:
        """Ask a worker to stop, and see that it ends well."""
        worker.ask_to_stop()
        await asyncio.to_thread(worker.end, deadline=time.monotonic() + STOP_SECONDS_MAX)
        assert 0 == worker.exit_code, worker.last_words()

    # -- Steps -----------------------------------------------------------------------------------------------

    def hold(self, *steps: str) -> None:
        """Let these steps wait for the test; the others just return."""
        for step in steps:
            self._gates[step] = Gate()

    async def reached(self, step: str) -> Visit:
        """The next execution of a step that is held."""
        return await in_time(self._gates[step].arrived.get())

    def open(self, *steps: str) -> None:
        """Let steps return, now and whenever they are executed again."""
        for step in steps:
            self._gates[step].open()

    def count(self, run: str = "run-1") -> dict[str, int]:
        """How often each step of a run was executed."""
        return dict(Counter(call.step for call in self.calls if call.run == run))

    def of(self, step: str, run: str = "run-1") -> list[Call]:
        """The executions of one step."""
        return [call for call in self.calls if (call.run, call.step) == (run, step)]

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = Visit(msgspec.json.decode(await reader.readline(), type=Call))
        self.calls.append(visit.call)
        gate = self._gates.get(visit.call.step)
        if gate is None or gate.is_open:
            visit.go_on()
        else:
            gate.waiting.append(visit)
            gate.arrived.put_nowait(visit)
        with suppress(ConnectionError):  # The process that asked may be dead by now.
            writer.write(await visit.answer)
            await writer.drain()
        writer.close()

    # -- Runs ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def client(self) -> AsyncIterator[outlive.Engine]:
        """An engine that looks at runs, and runs nothing."""
        async with outlive.Engine(self.place.url, worker=False, poll_seconds=0.02) as client:
            yield client

    async def result(self, run_id: str = "run-1") -> Any:
        """What a run returns."""
        async with self.client() as client:
            return await in_time(client.get(run_id).result())

    async def succeeded(self, step: str, run_id: str = "run-1") -> None:
        """Return when the journal of a run has the result of a step."""
        async with self.client() as client:

            async def is_there() -> bool:
                ended = await events_of(client.get(run_id), StepSucceeded)
                return any(event.result.v == msgspec.Raw(msgspec.json.encode(step)) for event in ended)

            await until(is_there)

    async def claims(self, run_id: str = "run-1") -> list[RunClaimed]:
        """Who took a run over."""
        async with self.client() as client:
            return await events_of(client.get(run_id), RunClaimed)

    async def check(self) -> None:
        """See that nothing was executed twice in one epoch and attempt, and that the store is whole."""
        executed = Counter((call.key, call.epoch, call.attempt) for call in self.calls)
        assert {1} == set(executed.values())
        store = self.place.store()
        await store.open()
        problems = await check_store(store)
        await store.close()
        assert [] == problems
        assert [] == [surprise for worker in self.workers for surprise in worker.surprises()]


@contextmanager
def _writing(path: Path | None) -> Iterator[None]:
    """Have the write lock of a SQLite file."""
    if path is None:
        yield
        return
    with closing(apsw.Connection(str(path))) as connection:
        connection.set_busy_timeout(round(PATIENCE_SECONDS * 1000))
        connection.execute("BEGIN IMMEDIATE")
        yield


def _beat_for_the_last_time(beat: Beat) -> None:
    """Renew a lease for a moment. A beat is as impatient as its lease is short, so that takes as often as it takes."""
    try:
        assert beat.renew(lease_seconds=PATIENCE_SECONDS)
        for _ in range(100):
            # If it was renewed and the answer was lost, the session may be over by the next time: that will do as well.
            with suppress(StoreUnavailableError):
                beat.renew(lease_seconds=0.3)
                return
        raise AssertionError("the store does not answer")
    finally:
        beat.close()
