"""The declaration of a function, without its code: how it is written, what it takes and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from outlive._cel.types import Type

COLLECTION = Type("collection")
"""The type of the argument of `size`: a text, a list or a map."""
TEXT_OR_LIST = Type("text or list")

Gives = Type | Callable[[list[Type]], Type]
"""The type of the result, or how it follows from the types that are given."""
Run = Callable[..., Any]
"""Takes the frame and the values."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the language."""

    form: str
    """How it is written, for messages and the documentation."""
    says: str
    """The result in words, for the documentation."""
    takes: tuple[Type, ...]
    gives: Gives
    run: Run
    least: int
    most: int

    def counts(self) -> str:
        """How many values it takes, in words."""
        if self.least == self.most:
            return "one value" if self.most == 1 else f"{self.most} values"
        return f"{self.least} or more values" if self.most > 9 else f"{self.least} to {self.most} values"


class Table:
    """The functions of one file, by their names."""

    def __init__(self) -> None:
        self.named: dict[str, Function] = {}

    def add(
        self, form: str, says: str, *takes: Type, gives: Gives, name: str = "", least: int = 0, most: int = 0
    ) -> Callable[[Run], Run]:
        """Add a function; its name is in its form unless it is given."""

        def keep(run: Run) -> Run:
            known = Function(form, says, takes, gives, run, least or len(takes), max(most, len(takes)))
            self.named[name or form.partition("(")[0].rpartition(".")[2]] = known
            return run

        return keep


def same(given: list[Type]) -> Type:
    """The result has the type of the first value."""
    return given[0]


def element(given: list[Type]) -> Type:
    """The result is an element of the first value."""
    return given[0].of or Type("any") if given[0].kind == "list" else Type("any")
