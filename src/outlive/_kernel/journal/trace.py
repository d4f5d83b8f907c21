"""Tracebacks to text and back: an exception of a step shows where it was raised, also in another process.

A journal keeps tracebacks as text. When the exception is raised again, in the workflow or for a client, it gets the
frames of that text back: everything that prints a traceback shows the way from the line that waits for the step to the
line of the step that failed, as if the one had called the other. These frames have a file, a line and a name, and no
variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FrameType, FunctionType, TracebackType

_FRAME = re.compile(r'^(?:  \| )?  File "(?P<file>.+)", line (?P<line>\d{1,9}), in (?P<name>.+)$', re.MULTILINE)


def own_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without our frames, unless the error is one of ours and they are its end."""
    frames: list[TracebackType] = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    own: TracebackType | None = None
    is_below = False
    for each in reversed(frames):
        is_below = is_below or not _is_ours(each.tb_frame)
        if not (is_below and _is_ours(each.tb_frame)):
            own = TracebackType(own, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return own if is_below else None


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("outlive._")


def trace_of(text: str) -> TracebackType | None:
    """The frames that a printed traceback shows."""
    trace: TracebackType | None = None
    for found in reversed(list(_FRAME.finditer(text))):
        code = _nowhere.__code__.replace(
            co_filename=found["file"],
            co_name=found["name"],
            co_qualname=found["name"],
            co_firstlineno=int(found["line"]),
            co_linetable=_NO_COLUMNS,
        )
        # A generator that was never begun has a frame, and nothing in it.
        frame = FunctionType(code, {})().gi_frame
        trace = TracebackType(trace, frame, 0, int(found["line"]))
    return trace


def _nowhere() -> Iterator[None]:
    yield


def _without_columns(units: int) -> bytes:
    """A table of locations (PEP 657) that puts all of a code on its first line: nothing is underlined there."""
    entries = [0x80 | 13 << 3 | min(units - begin, 8) - 1 for begin in range(0, units, 8)]
    return bytes(byte for entry in entries for byte in (entry, 0))


_NO_COLUMNS = _without_columns(len(_nowhere.__code__.co_code) // 2)
