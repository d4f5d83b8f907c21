"""What is known after a chaos trial, beyond what is known after a kill trial."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from proof.chaos.storm import Storm
from proof.chaos.trial import Stop
from proof.kill.evidence import Evidence, observe

SAID = {
    "lease": re.compile(r"this worker has lost its lease"),
    "late": re.compile(r"lost its lease \((another worker has ended this session|the lease was renewed too late)\)"),
    "session": re.compile(r"a new session has begun"),
    "full": re.compile(r"is full|No space left|disk I/O error"),
    "away": re.compile(r"is unavailable"),
}
"""What workers log, by what it tells us."""


@dataclass
class StormEvidence(Evidence):
    """Everything that is known when a storm is over."""

    faults: Counter[str] = field(default_factory=Counter)
    """What was done to the fleet, and how often."""
    stops: list[Stop] = field(default_factory=list)
    cuts: int = 0
    """Commits that happened and were not answered."""
    said: Counter[str] = field(default_factory=Counter)
    """How often workers logged what `SAID` lists."""
    can_fill: bool = True
    """Whether the disk of the store could be filled at all."""
    has_line: bool = True
    """Whether there is a line to the store, and a server at its end."""


def observe_storm(storm: Storm, *, drain_seconds: float) -> StormEvidence:
    """Let it rage, let everything finish, and collect what is known."""
    it = StormEvidence(
        seed=storm.trial.seed,
        faults=storm.faults,
        stops=storm.stops,
        can_fill=storm.disk is not None,
        has_line=storm.server is not None,
    )
    observe(storm, it, drain_seconds=drain_seconds)
    it.cuts = storm.cuts
    for log in storm.trial.folder.glob("*.log"):
        text = log.read_text("utf-8", "replace")
        it.said.update({what: len(pattern.findall(text)) for what, pattern in SAID.items()})
    return it
