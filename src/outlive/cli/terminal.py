"""Protects the terminal from data. Names, messages and payloads are shown as text, whatever they hold.

A control character could move the cursor, hide a line, change the title or ask the terminal for an answer; marks of
writing direction could let a line read as another one. `Guard` is put before standard output and shows them as
`\\x1b`. The colours of our own stay. What goes into a pipe often comes to a terminal behind it (`| grep`), so text for
people is shown in the same way there. What is for programs (`--json`, documents, exports) goes past it as bytes.
"""

from __future__ import annotations

import logging
import re
from typing import Any, TextIO, cast

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE_IN_JSON = re.compile(rf"[\x7f-\x9f\u2028\u2029{_BIDI}]")
_UNSAFE = re.compile(rf"(\x1b\[[0-9;]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_BIDI}]")


def shown(text: str) -> str:
    """Text without what a terminal would obey, apart from colours."""
    return _UNSAFE.sub(lambda match: match[1] or match[0].encode("unicode_escape").decode(), text)


def shown_json(data: bytes) -> bytes:
    """JSON of the same value, in which texts have escapes for characters that a terminal would obey."""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", data.decode()).encode()


class Guard:
    """A stream for people; everything but `write` is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text that may hold anything."""
        self._stream.write(shown(text))
        return len(text)


def guarded(stream: TextIO) -> TextIO:
    """A stream behind a guard."""
    return stream if isinstance(stream, Guard) else cast(TextIO, Guard(stream))


class LineFormatter(logging.Formatter):
    """A line of the log for people. What follows in the same record is indented, so that a message of data with line
    ends in it cannot look like a record of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return shown(super().format(record).replace("\r", "")).replace("\n", "\n    ")
