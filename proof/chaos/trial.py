"""How a chaos trial is set up, and what it notes down about its processes."""

from __future__ import annotations

from dataclasses import dataclass

from proof.kill.supervisor import Trial


@dataclass(frozen=True)
class StormTrial(Trial):
    """How a chaos trial is set up."""

    down_seconds: float = 60.0
    """How long the store is away in the one long outage."""

    @property
    def again(self) -> str:
        """The command that repeats the trial."""
        return (
            f"python -m proof.chaos --store {self.store} --kills {self.kills} --seed {self.seed} "
            f"--workers {self.workers} --server-kills {self.server_kills} --down-seconds {self.down_seconds:g}"
        )


@dataclass(frozen=True)
class Stop:
    """A worker that was asked to stop with SIGTERM."""

    at: float
    pid: int
    seconds: float
    code: int
