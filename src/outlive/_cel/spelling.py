"""Which known name was meant by an unknown one.

A document may have thousands of unknown names and thousands of known ones, so each is held against a few only: names
that begin or end alike, and names with one letter less.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import lru_cache

ALL_MAX = 24
"""So many known names are all looked at."""
NEIGHBOURS = 3
"""How many neighbours on each side are compared when there are more names, in the order of their beginnings and in that
of their ends."""
CHARACTERS_MAX = 60
SIMILARITY = 0.6
SUGGESTIONS_MAX = 10
"""With so many mistakes people look at the document, and to compare names is what costs most of a check."""
_left: ContextVar[list[None] | None] = ContextVar("outlive-suggestions-left", default=None)
"""One for each name that may still be looked for; None for any number."""


@contextmanager
def few_suggestions() -> Iterator[None]:
    """Look for the names that are meant by the first few unknown ones only. Around another of these it counts on."""
    if _left.get() is not None:
        yield
        return
    token = _left.set([None] * SUGGESTIONS_MAX)
    try:
        yield
    finally:
        _left.reset(token)


def suggests() -> bool:
    """Whether a name may be looked for; it counts as one."""
    left = _left.get()
    if left:
        left.pop()
    elif left is not None:
        return False
    return True


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, if any is like it."""
    names = tuple(known)
    if len(name) > CHARACTERS_MAX:
        return None
    candidates = names if len(names) <= ALL_MAX else _neighbours(name, names)
    close = get_close_matches(name, [each for each in candidates if len(each) <= CHARACTERS_MAX], 1, SIMILARITY)
    return close[0] if close else None


def beginning_with(beginning: str, known: Iterable[str]) -> str | None:
    """The first known name, in order, that begins so."""
    forwards, _ = _in_order(tuple(known))
    at = bisect_left(forwards, beginning)
    return forwards[at] if at < len(forwards) and forwards[at].startswith(beginning) else None


def _neighbours(name: str, names: tuple[str, ...]) -> list[str]:
    forwards, backwards = _in_order(names)
    shorter = sorted({name[:cut] + name[cut + 1 :] for cut in range(len(name))})
    at, mirrored = bisect_left(forwards, name), name[::-1]
    behind = bisect_left(backwards, mirrored)
    return [
        *(each for each in shorter if _has(forwards, each)),
        *forwards[max(0, at - NEIGHBOURS) : at + NEIGHBOURS],
        *(each[::-1] for each in backwards[max(0, behind - NEIGHBOURS) : behind + NEIGHBOURS]),
    ]


def _has(names: list[str], name: str) -> bool:
    at = bisect_left(names, name)
    return at < len(names) and names[at] == name


@lru_cache(maxsize=8)
def _in_order(names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The names in order, and the mirrored names in order."""
    return sorted(names), sorted(each[::-1] for each in names)
