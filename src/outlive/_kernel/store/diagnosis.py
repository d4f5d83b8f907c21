"""The findings of a doctor at the place of a store. The doctor writes nothing."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Level(enum.Enum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and may stop to."""
    PROBLEM = "problem"
    """It does not work, or may lose what was confirmed."""


class Finding(NamedTuple):
    """One thing that was looked at."""

    check: str
    level: Level
    said: str
    advice: str = ""
    """The way to repair it; empty for a finding that is good."""


def well(check: str, said: str) -> Finding:
    """It is as it should be."""
    return Finding(check, Level.OK, said)


def warning(check: str, said: str, advice: str) -> Finding:
    """It works, and a person should look."""
    return Finding(check, Level.WARNING, said, advice)


def problem(check: str, said: str, advice: str) -> Finding:
    """A person has to act."""
    return Finding(check, Level.PROBLEM, said, advice)


def size(count: float) -> str:
    """So many bytes, for people."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"
