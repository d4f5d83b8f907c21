"""Start a measured process, wait for its line, and see it dead: whatever happens, nothing is left behind.

A child runs in a session of its own, so that it and anything it started can be ended together. It has a
deadline: a rival that hangs costs its row, not the run. The wait is for the line or for the end of the pipe,
never a poll.
"""

from __future__ import annotations

import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench.database import fresh
from bench.meter import Figures
from bench.workload import Workload

ROOT = Path(__file__).resolve().parent.parent
STDERR_CHARS_MAX = 2000
IMPORT_ROUNDS = 10


class MeasurementFailedError(Exception):
    """A measured process ended without an answer, or not in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one measurement said, or why it said nothing."""

    store: str
    workload: str
    system: str
    turn: int
    """The round, from 1."""
    n: int
    figures: Figures
    load_1min: float
    """How busy the machine was just before."""
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where and how measurements are taken."""

    directory: Path
    postgres_url: str | None
    scale: float

    def take(self, workload: Workload, *, system: str, store: str, turn: int) -> Sample | None:
        """Measure one workload on one system once; None if that system does not do it."""
        n = workload.size(system, self.scale)
        if n is None:
            return None
        figures: Figures = {}
        failure = None
        load_1min = os.getloadavg()[0]
        try:
            with fresh(store, directory=self.directory, postgres_url=self.postgres_url) as url:
                figures = self._measure(workload, system=system, n=n, url=url)
        except MeasurementFailedError as error:
            failure = str(error)
        return Sample(
            store=store,
            workload=workload.name,
            system=system,
            turn=turn,
            n=n,
            figures=figures,
            load_1min=load_1min,
            failure=failure,
        )

    def _measure(self, workload: Workload, *, system: str, n: int, url: str) -> Figures:
        def answer(phase: str) -> Figures:
            command = ["-m", "bench.child", system, workload.name, phase, str(n), url]
            return answer_of(command, timeout_seconds=workload.timeout_seconds)

        if not workload.is_killed:
            return answer("run")
        figures = answer("prepare")
        executed_at = time.monotonic()
        figures |= answer("recover")
        completed_at = figures.pop("completed_at")
        assert isinstance(completed_at, float)
        return figures | {"recover_seconds": completed_at - executed_at}


def child_environment() -> dict[str, str]:
    """The parent's environment, with the repository's own packages first."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


@contextmanager
def child(command: list[str], *, stderr: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Python process; SIGKILL it and all it started on the way out, and reap it."""
    process = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=child_environment(),
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        # Not yet reaped, so its id, which is also its group's, cannot belong to anybody else.
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def answer_of(command: list[str], *, timeout_seconds: float) -> Figures:
    """The line a measured process prints. The process is dead, killed if need be, when this returns."""
    with tempfile.TemporaryFile() as stderr, child(command, stderr=stderr) as process:
        line = read_line(process, deadline=time.monotonic() + timeout_seconds)
        if line is not None and line.endswith(b"\n"):
            figures: Figures = json.loads(line)
            return figures
        if line is None:
            reason = f"no answer within {timeout_seconds:.0f} s"
        else:
            reason = f"ended with status {process.wait()}"
        stderr.seek(0)
        said = stderr.read().decode(errors="replace")[-STDERR_CHARS_MAX:].strip()
        raise MeasurementFailedError(f"{reason}: {said}" if said else reason)


def read_line(process: subprocess.Popen[bytes], *, deadline: float) -> bytes | None:
    """What the process wrote up to its first newline or its end; None if the deadline came first."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    received = bytearray()
    while not received.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(descriptor, 65536)
        if not chunk:
            break
        received += chunk
    return bytes(received)


def import_milliseconds(module: str) -> list[float]:
    """What importing a module adds to the start of a bare interpreter, measured in turns with it."""
    return [1000 * (start_seconds(f"import {module}") - start_seconds("pass")) for _ in range(IMPORT_ROUNDS)]


def start_seconds(program: str) -> float:
    """How long a fresh interpreter takes to run this program and end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], env=child_environment(), check=True, timeout=60)
    return time.perf_counter() - began


def median_of(samples: list[Sample], key: str) -> float | None:
    """The middle of what the rounds said about one figure."""
    values = [value for sample in samples if isinstance(value := sample.figures.get(key), int | float)]
    return statistics.median(values) if values else None
