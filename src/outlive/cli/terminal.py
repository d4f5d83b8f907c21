"""What data may do to a terminal: nothing. Names, messages and payloads are shown as text, whatever they hold.

A control character could move the cursor, hide a line, change the title or ask the terminal for an answer; marks of
writing direction could let a line read as another one. `Terminal` is put before standard output and shows them as
`\\x1b`. The colours of our own stay. In a pipe nothing is changed: what reads it is a program.
"""

from __future__ import annotations

import logging
import re
from typing import Any, TextIO, cast

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE = re.compile(rf"(\x1b\[[0-9;]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_BIDI}]")


def shown(text: str) -> str:
    """Text without what a terminal would obey, apart from colours."""
    return _UNSAFE.sub(lambda match: match[1] or match[0].encode("unicode_escape").decode(), text)


class Terminal:
    """A stream that writes to a terminal; everything but `write` is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text that may hold anything."""
        self._stream.write(shown(text))
        return len(text)


def guarded(stream: TextIO) -> TextIO:
    """The stream itself, or what is before a terminal."""
    return cast(TextIO, Terminal(stream)) if stream.isatty() else stream


class LineFormatter(logging.Formatter):
    """A line of the log for people. What follows in the same record is indented, so that a message of data with line
    ends in it cannot look like a record of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return shown(super().format(record).replace("\r", "")).replace("\n", "\n    ")
