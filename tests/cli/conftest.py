"""Commands as a shell runs them, and places for their runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OUTLIVE = [sys.executable, "-m", "outlive.cli"]
PATIENCE_SECONDS = 20.0
"""How long a test waits for what must happen; only a failing test waits that long."""


class Command:
    """A command that runs; `log` is what it wrote to its standard error."""

    def __init__(self, *args: str, folder: Path) -> None:
        self._folder = folder
        self._log = folder / f"log-{time.monotonic_ns()}"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*OUTLIVE, *args], stdout=subprocess.PIPE, stderr=log, env=environment(folder), cwd=folder, text=True
            )
        self.notes = self._log.open()
        """What it writes to its standard error, line by line."""

    @property
    def log(self) -> str:
        """What it wrote to its standard error so far."""
        return self._log.read_text()

    def ready(self) -> str:
        """Wait for its first line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready:"), line + self.log
        return line

    def says(self, words: str) -> None:
        """Wait until it has written this to its standard error."""
        until(lambda: words in self.log or self.process.poll() is not None)
        assert words in self.log, self.log

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def ends(self) -> int:
        """Wait for its exit code."""
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        """See that it is gone."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.notes.close()


def environment(folder: Path) -> dict[str, str]:
    """Our source, and the place that the shop writes to."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    return {key: it for key, it in os.environ.items() if key != "OUTLIVE_STORE"} | {
        "PYTHONPATH": path,
        "SHOP": str(folder),
    }


def until(condition: Callable[[], bool]) -> None:
    """Return when a condition holds that no event announces."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.005)


class Ledger:
    """What the steps of the shop have said."""

    def __init__(self, folder: Path) -> None:
        self._file, self._gate = folder / "ledger", folder / "gate"

    def lines(self) -> list[tuple[str, int, float]]:
        """What was said, by which process, and when."""
        if not self._file.exists():
            return []
        parts = [line.rsplit(" ", 2) for line in self._file.read_text().splitlines()]
        return [(what, int(process), float(at)) for what, process, at in parts]

    def said(self) -> list[str]:
        """Only what was said."""
        return [what for what, _, _ in self.lines()]

    def hears(self, what: str, *, times: int = 1) -> float:
        """Wait until something was said so often; when that was."""
        until(lambda: self.said().count(what) >= times)
        return [at for said, _, at in self.lines() if said == what][times - 1]

    def open_gate(self) -> None:
        """Let steps end."""
        self._gate.touch()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """What the steps of the shop have said."""
    return Ledger(tmp_path)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Begins commands; none of them outlives the test."""
    begun: list[Command] = []

    def begin(*args: str) -> Command:
        begun.append(Command(*args, folder=tmp_path))
        return begun[-1]

    yield begin
    for it in begun:
        it.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:{tmp_path / 'shop.db'}"
