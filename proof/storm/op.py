"""What programs are made of: plain data that client, workers and checks share."""

from __future__ import annotations

from dataclasses import dataclass

EMITTED = 3
"""Items that a workflow itself emits on each of its streams."""


@dataclass(frozen=True)
class Op:
    """One operation of a program."""

    kind: str
    place: int
    """Its number, unique in the program and in everything that the program starts."""
    value: int = 0
    """What it adds to the result; a signal adds what it carries."""
    parts: tuple[Op, ...] = ()
    fails: int = 0
    """How often it fails by plan before it succeeds; an item, a saga: whether it does; how many generations follow."""
    id: str = ""
    """The id of the detached run that it starts, or the name of what it asks people for, is asked or promises."""


@dataclass(frozen=True)
class Program:
    """What one run does, and how it ends."""

    ops: tuple[Op, ...]
    ending: str = "return"
    """`return` the total, `raise` it, `wait` for something that never comes, or fail until there is a `repair`."""
    number: int = 0
    """Of the job, for one that is repaired."""


@dataclass(frozen=True)
class Relay:
    """A run of several generations: what is left to do when one of them begins."""

    generations: int
    """How many are still to come after it."""
    each: int
    """How many signals each of them takes."""
    place: int
    total: int = 0
    ending: str = "return"


@dataclass(frozen=True)
class Booked:
    """The result of a booking, from which it can be undone."""

    place: int
    value: int
