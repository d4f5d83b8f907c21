"""How deep JSON is nested and how many maps and lists it holds, found before it is parsed: a parser that recurses could
run out of stack, and what is done with each of a million lists takes seconds.

A stranger may send megabytes of brackets, so no bracket costs a step of Python: functions of C take the marks
out of the text, the strings out of the marks, and sum up the depths, each once over the whole text.
"""

from __future__ import annotations

from array import array
from itertools import accumulate

DEPTH_MAX = 100
"""How deep JSON may be nested; a journal takes no more."""
CONTAINERS_MAX = 250_000
"""How many maps and lists one body may hold: a batch of 100,000 rows has two for each."""
_STEPS = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")
"""A bracket as what it adds to the depth, in a signed byte."""
_OTHERS = bytes(set(range(256)) - set(b'[]{}"'))


def is_deeper(text: bytes, levels: int) -> bool:
    """Whether JSON is nested deeper than so many levels; of what is not JSON, whether it would be."""
    if text.count(b"[") + text.count(b"{") <= levels:
        return False
    return max(accumulate(array("b", _marks(text))), default=0) > levels


def holds_more(text: bytes, containers: int) -> bool:
    """Whether JSON holds more maps and lists than so many."""
    return text.count(b"[") + text.count(b"{") > containers and _marks(text).count(1) > containers


def _marks(text: bytes) -> bytes:
    """The step in depth of each bracket that is not in a string."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two marks side by side end one string and begin another: without them the rest is in a string where it was before.
    marks = text.translate(_STEPS, _OTHERS).replace(b'""', b"")
    if b'"' in marks:
        marks = b"".join(marks.split(b'"')[::2])  # Text behind an odd number of marks is in a string.
    return marks
