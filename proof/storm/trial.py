"""How a trial is set up, and what it notes down about its processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from proof.storm.fault import KILL, Mix


@dataclass(frozen=True)
class Trial:
    """How a trial is set up; with the seed, all that is needed to repeat it."""

    folder: Path
    url: str
    store: str
    seed: int
    kills: int
    workers: int
    mix: Mix = KILL
    minutes: float | None = None
    """Stop after this time, even if fewer were killed."""
    server_kills: int = 0
    """How often the server of the store is killed meanwhile."""
    down_seconds: float = 60.0
    """How long the store is away in the one long outage."""

    @property
    def effects(self) -> Path:
        """What steps did."""
        return self.folder / "effects.jsonl"

    @property
    def acks(self) -> Path:
        """What clients were answered."""
        return self.folder / "acks.jsonl"

    @property
    def tallies(self) -> Path:
        """What engines counted."""
        return self.folder / "tallies.jsonl"

    @property
    def again(self) -> str:
        """The command that repeats the trial."""
        words = [
            f"python -m proof.storm {self.mix.name} --store {self.store} --kills {self.kills} --seed {self.seed}",
            f"--workers {self.workers}",
            *([f"--server-kills {self.server_kills}"] if self.server_kills else []),
            *([f"--down-seconds {self.down_seconds:g}"] if self.mix.has_outage else []),
            *([] if self.minutes is None else [f"--minutes {self.minutes:g}"]),
        ]
        return " ".join(words)


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


@dataclass(frozen=True)
class Stop:
    """A worker that was asked to stop with SIGTERM."""

    at: float
    pid: int
    seconds: float
    code: int
