"""Advice as data: the verb of the engine that helps next, with its arguments.

Python, a terminal and HTTP each put it into words of their own: `engine.resume('order-7')`, `outlive runs resume
order-7` and `POST /api/v1/runs/order-7/resume`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

SUBJECTS = frozenset({"batch_id", "key_id", "name", "queue", "run_id"})
"""Arguments that a call in Python has by position."""


class Advice(msgspec.Struct, frozen=True):
    """The verb that helps next. As text it is a call in Python, with its effect."""

    verb: str
    """The verb of the engine: `resume`, `queues.set`."""
    arguments: dict[str, Any] = {}
    """Its arguments, by the names that the engine has for them."""
    effect: str = ""
    """The end of a sentence that begins with the call: `lets it go on`."""

    def __repr__(self) -> str:
        return f"<Advice {self}>"

    def __str__(self) -> str:
        given = (f"{it!r}" if name in SUBJECTS else f"{name}={it!r}" for name, it in self.arguments.items())
        return with_effect(self, f"engine.{self.verb}({', '.join(given)})")


def kind_of(advice: Advice) -> tuple[str, str]:
    """The verb and its first argument, which tell apart what a verb does: `resume` of a run and of a workflow."""
    return advice.verb, next(iter(advice.arguments), "")


def with_effect(advice: Advice, call: str) -> str:
    """The sentence that begins with a call, in whatever words."""
    return f"{call} {advice.effect}" if advice.effect else call


def in_words(summary: str, advice: Iterable[Advice], say: Callable[[Advice], str] = str) -> str:
    """A message with its advice, each in the words of `say`; advice for which that has none is left out."""
    said = "; ".join(filter(None, map(say, advice)))
    between = "" if not summary or not said else " " if summary.endswith((".", "?")) else "; "
    return f"{summary}{between}{said}"
