"""How text looks on a terminal: colours, spans and instants. In a pipe, and with NO_COLOR, it is only text."""

from __future__ import annotations

import os
import sys
from datetime import datetime

import click

COLOURS = {
    "succeeded": "green",
    "done": "green",
    "running": "blue",
    "pending": "cyan",
    "waiting": "yellow",
    "open": "yellow",
    "parked": "magenta",
    "failed": "red",
    "timed_out": "red",
    "damaged": "red",
    "cancelled": "bright_black",
    "stopped": "bright_black",
    "continued": "bright_black",
}
"""The colours of statuses of runs, and of states of lines."""
UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def is_coloured() -> bool:
    """Whether standard output shows colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, state: str) -> str:
    """Text in the colour of a status or a state."""
    colour = COLOURS.get(state)
    return click.style(text, fg=colour) if colour is not None and is_coloured() else text


def strong(text: str) -> str:
    """Text that is to be seen first."""
    return click.style(text, bold=True) if is_coloured() else text


def span(seconds: float) -> str:
    """A time in the largest unit that fits: `12 ms`, `3.2 s`, `5 min`."""
    if seconds < 0.9995:
        return f"{seconds * 1_000:.3g} ms" if seconds >= 0.001 else "0 ms"
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    unit, size = next((unit, size) for unit, size in UNITS if seconds >= size)
    return f"{seconds / size:.2g} {unit}" if unit != "s" and seconds < 10 * size else f"{seconds / size:.0f} {unit}"


def clock(at: datetime) -> str:
    """An instant for people, in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S}"
