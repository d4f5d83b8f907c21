"""Where the values of a document are in its text: line and column for every path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from outlive.errors.document import Path, Problem, placed

SPACE = frozenset(" \t\r\n")
OFFSET_MAX = 10_000
"""How far into a text with escapes a place is looked for."""


class Place(NamedTuple):
    """Where something begins, counted from 1."""

    line: int
    column: int


NOWHERE = Place(0, 0)


class Mark(Protocol):
    """A place as the YAML parser knows it, counted from 0."""

    line: int
    column: int
    index: int


class Extent(NamedTuple):
    """Where a value is: its key if it has one, its first character and its last one."""

    key: Mark | None
    begin: Mark
    end: Mark
    is_block: bool
    """A map or list over several lines: people look for its key, not for its first entry."""


class Positions:
    """The places of one document. Without a text, of a document made by code, every place is nowhere."""

    def __init__(self, text: str = "") -> None:
        self._text = text
        self.extents: dict[Path, Extent] = {}
        """The reader fills it in."""

    def of(self, path: Path) -> Place:
        """Where a value is; the nearest value around it, if this one is not in the text."""
        extent, is_exact = self._nearest(path)
        if extent is None:
            return NOWHERE
        by_key = extent.key is not None and (extent.is_block or not is_exact)
        return place_of(extent.key if by_key and extent.key is not None else extent.begin)

    def of_key(self, path: Path) -> Place:
        """Where the name of a field is."""
        extent, _ = self._nearest(path)
        return NOWHERE if extent is None else place_of(extent.key or extent.begin)

    def in_text(self, path: Path, value: str, offset: int) -> Place:
        """Where a character of a text is: `offset` counts in the value, which quotes and folding have changed."""
        extent = self.extents.get(path)
        if extent is None:
            return self.of(path)
        at, end = extent.begin.index, extent.end.index
        for begin in (at, at + 1):  # Nothing has changed it, or there is a quote before it.
            if self._text.startswith(value[: offset + 1], begin):
                return place_at(self._text, begin + offset)
        if offset > OFFSET_MAX:
            return place_of(extent.begin)
        for character in value[:offset]:
            if character not in SPACE:
                found = self._text.find(character, at, end)
                if found < 0:
                    return place_of(extent.begin)
                at = found + 1
        if offset < len(value):
            at = max(at, self._text.find(value[offset], at, end))
        return place_at(self._text, at)

    def located(self, problems: Iterable[Problem]) -> list[Problem]:
        """Problems with their places, where they had none."""
        return [problem if problem.line else placed(problem, *self.of(problem.path)) for problem in problems]

    def _nearest(self, path: Path) -> tuple[Extent | None, bool]:
        for length in range(len(path), -1, -1):
            extent = self.extents.get(path[:length])
            if extent is not None:
                return extent, length == len(path)
        return None, False


def place_of(mark: Mark) -> Place:
    """A place for people."""
    return Place(mark.line + 1, mark.column + 1)


def place_at(text: str, index: int) -> Place:
    """The place of a character in a text."""
    begin = text.rfind("\n", 0, index) + 1
    return Place(text.count("\n", 0, index) + 1, index - begin + 1)
