"""A PostgreSQL server and the workers of a drill."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from outlive.testing.child_process import ChildProcess
from outlive.testing.line_file import Tail
from outlive_conformance.servers.postgres import PostgresServer
from proof.storm import effects
from proof.storm.effects import Effect


@dataclass
class Fleet:
    """Workers over one store."""

    server: PostgresServer
    folder: Path
    lease_seconds: float
    workers: dict[str, ChildProcess] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._effects = Tail(self.folder / "effects.jsonl", Effect)

    @property
    def url(self) -> str:
        """Where the store is."""
        return self.server.store_url()

    def add(self, name: str, *, runs: int, kind: str = "held") -> ChildProcess:
        """Start a worker, and wait until all of its runs are under way."""
        worker = ChildProcess(
            "proof.storm.drills.work",
            self.url,
            str(self.lease_seconds),
            name,
            str(runs),
            kind,
            log=self.folder / f"{name}.log",
            env={effects.PLACE: str(self.folder / "effects.jsonl")},
        )
        self.workers[name] = worker
        assert worker.read_line(), f"worker {name} did not get its runs under way:\n{worker.last_words()}"
        return worker

    def begun_elsewhere(self, name: str) -> dict[str, float]:
        """When each run of a worker first went on in another process."""
        owner = self.workers[name].pid
        found: dict[str, float] = {}
        self._effects.look()
        for line in self._effects.lines:
            if line.mark == "begin" and line.pid != owner and line.run.startswith(f"{name}-"):
                found.setdefault(line.run, line.at)
        return found


@contextmanager
def fleet(lease_seconds: float) -> Iterator[Fleet]:
    """An empty one, ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="outlive-drill-") as folder, PostgresServer() as server:
        it = Fleet(server, Path(folder), lease_seconds)
        try:
            yield it
        finally:
            for worker in it.workers.values():
                worker.kill()
