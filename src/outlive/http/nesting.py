"""How deep JSON is nested, found before it is parsed: a parser that recurses could run out of stack."""

from __future__ import annotations

import re

DEPTH_MAX = 100
"""How deep JSON may be nested; a journal takes no more."""
# A string without an end is taken as one up to the end of the text, and no part of it is looked at twice: else a text
# of many quotes, none of which closes, would take time that grows with the square of its length.
_NESTING = re.compile(rb'"(?:[^"\\]|\\.?)*+"?|[\[\]{}]', re.DOTALL)
_OPENING = (b"[", b"{")


def is_deeper(text: bytes, levels: int) -> bool:
    """Whether JSON is nested deeper than so many levels; of what is no JSON, whether it would be."""
    if text.count(b"[") + text.count(b"{") <= levels:
        return False
    depth = 0
    for match in _NESTING.finditer(text):
        mark = match[0]
        if mark in _OPENING:
            depth += 1
            if depth > levels:
                return True
        elif len(mark) == 1 and mark != b'"':
            depth -= 1
    return False
