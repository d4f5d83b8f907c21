"""The problems of a flow: each with its place in the document, and all of them in one error."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest

from outlive._cel.spelling import nearest, suggests

PROBLEMS_LOOKED_FOR = 500
"""In a document with more mistakes than these the others are not looked for; as many warnings are shown."""
NAMES_SHOWN_MAX = 12


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Advice on a name that is not known: the nearest one, or all of them if they are few. Nothing if there were many
    such names before (`few_suggestions`)."""
    if not suggests():
        return ""
    names = list(known)
    if near := nearest(name, names):
        return f"did you mean {near}?"
    if not names:
        return ""
    shown = ", ".join(nsmallest(NAMES_SHOWN_MAX, names))
    return f"known: {shown}{', ...' if len(names) > NAMES_SHOWN_MAX else ''}"
