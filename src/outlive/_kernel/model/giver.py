"""The giver of the arguments of a run: what it may give, and what the audit log must say of it.

Arguments are taken in many places, and some of them say more than data: the overrides of a flow change its steps. Where
such arguments are encoded, this is asked what their giver may change. Code of the program may give anything; a
server says of each request what the principal may.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SAID_MAX = 20
"""How many sentences the audit log keeps of one action."""
STEPS_SHOWN_MAX = 20
NAME_SHOWN_MAX = 60


class Giver:
    """A principal that gives arguments."""

    __slots__ = ("_said", "is_free")

    def __init__(self, *, is_free: bool) -> None:
        self.is_free = is_free
        """Whether it may change everything of a flow for one run, and not only policies."""
        self._said: list[str] = []

    def say(self, text: str) -> None:
        """Let the next action in the audit log say this too."""
        if text not in self._said and len(self._said) < SAID_MAX:
            self._said.append(text)

    def take(self) -> list[str]:
        """Return the collected sentences, and forget them."""
        said, self._said = self._said, []
        return said


GIVER: ContextVar[Giver | None] = ContextVar("outlive-giver", default=None)
"""None for the code of the program itself."""


def gives_freely() -> bool:
    """Whether arguments that are taken here may change everything of a flow."""
    found = GIVER.get()
    return found is None or found.is_free


@contextmanager
def giving_policies() -> Iterator[None]:
    """Treat the arguments that are taken in this block as given by a principal that may change policies only: the
    worker knows nothing of who asked."""
    token = GIVER.set(Giver(is_free=False))
    try:
        yield
    finally:
        GIVER.reset(token)


def say(text: str) -> None:
    """Let the audit log say this of what is done next; nothing if no principal acts."""
    found = GIVER.get()
    if found is not None:
        found.say(text)


# -- The arguments of a flow -----------------------------------------------------------------------------------

MAY = "may"
"""The argument of a flow that no caller can give: what the giver of the others might change with `overrides`. Without
it they came past the code that checks them with the document at hand."""
MAY_ALL, MAY_POLICIES = "all", "policies"


def overrides_shown(overrides: object) -> str:
    """For the audit log: `overrides of charge (retry, timeout), pay (limit)`; no values, which may be anything."""
    if not isinstance(overrides, dict):
        return "overrides"
    steps = [f"{str(id)[:NAME_SHOWN_MAX]} ({_fields_shown(patch)})" for id, patch in overrides.items()]
    more = f" and {len(steps) - STEPS_SHOWN_MAX} more" if len(steps) > STEPS_SHOWN_MAX else ""
    return f"overrides of {', '.join(steps[:STEPS_SHOWN_MAX])}{more}"


def _fields_shown(patch: object) -> str:
    if not isinstance(patch, dict):
        return "?"
    return ", ".join(str(name)[:NAME_SHOWN_MAX] for name in sorted(patch, key=str)[:STEPS_SHOWN_MAX])
