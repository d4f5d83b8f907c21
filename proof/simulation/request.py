"""What users want done: asked of any process that is up, and asked again elsewhere until it is acknowledged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proof.simulation.loop import SimulatedLoop
from proof.simulation.process import SimulatedEngine
from proof.simulation.program import Case

Verb = Callable[[SimulatedEngine], Awaitable[None]]


class NotYetError(Exception):
    """It cannot be done now, or not in this process: the user asks again, maybe elsewhere."""


@dataclass(slots=True, eq=False)
class UserRequest:
    """Something that a user wants done."""

    what: str
    verb: Verb
    then: Callable[[], None] = lambda: None
    """Called when it is acknowledged, or will never be."""
    at: SimulatedLoop | None = None
    """Where it is tried now."""


Ask = Callable[[float, UserRequest], None]
"""Ask for something after so many seconds, until it is done."""
MayGoOn = Callable[[Case], bool]
"""Whether a run that has ended will be retried."""
