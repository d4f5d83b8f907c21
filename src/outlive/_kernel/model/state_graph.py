"""The states of a machine and where they go, as data: what a picture needs of its code.

Workers describe their machines with it, so that a server without the code can draw them.
"""

from __future__ import annotations

import msgspec


class StateBox(msgspec.Struct, frozen=True, omit_defaults=True):
    """One state."""

    name: str
    kind: str = "state"
    """The kind of the state in words of people: state, poll, timer, split, router, exit and so on."""
    to: tuple[str, ...] = ()
    """The states that it can go to."""
    guessed: tuple[str, ...] = ()
    """The targets in `to` that the code mentions and no annotation promises."""


class StateGraph(msgspec.Struct, frozen=True, omit_defaults=True):
    """A machine."""

    start: str
    states: tuple[StateBox, ...]
    """In the order of their enumeration."""

    @property
    def ordered(self) -> list[StateBox]:
        """The states, the first one first."""
        return sorted(self.states, key=lambda state: state.name != self.start)

    @property
    def arrows(self) -> list[tuple[str, str]]:
        """From which state to which."""
        return [(state.name, other) for state in self.states for other in state.to]
