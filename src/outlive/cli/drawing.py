"""A timeline as text: one line for each step, wait, child and gap, with a bar that shows when it was.

The scale is not even. Between two moments at which something happened the bar is as long as the logarithm of the time:
a step of 20 ms stays visible beside a wait of two days.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import log2

from outlive._kernel.client.timeline import Line, LineKind, LineState
from outlive._kernel.model.instant import MICROSECONDS
from outlive.cli.paint import painted, span

GRAIN = 10_000
"""Microseconds that are short beside everything else."""
_BARS = {
    LineKind.STEP: "=",
    LineKind.CHILD: "-",
    LineKind.OTHER: "-",
    LineKind.WAIT: "~",
    LineKind.APPROVAL: "~",
    LineKind.LOST: "!",
    LineKind.MARK: "|",
}
BREAK, FAILED, GOES_ON = ".", "x", ">"


class Scale:
    """Where moments are on a bar of some width."""

    def __init__(self, lines: Sequence[Line], *, now_at: int, width: int) -> None:
        moments = {now_at} | {line.began_at for line in lines} | {line.ended_at or now_at for line in lines}
        moments |= {at for line in lines for attempt in line.attempts for at in (attempt.began_at, attempt.ended_at)}
        self._moments = sorted(moments)
        sums = [0.0]
        for before, after in zip(self._moments, self._moments[1:], strict=False):
            sums.append(sums[-1] + log2(1 + (after - before) / GRAIN))
        whole = sums[-1] or 1.0
        self._places = [min(width - 1, int(width * each / whole)) for each in sums]
        self.width = width

    def place(self, at: int) -> int:
        """The column of a moment that the lines have."""
        return self._places[min(bisect_left(self._moments, at), len(self._places) - 1)]


def drawn(lines: Sequence[Line], *, began_at: int, now_at: int, width: int) -> list[str]:
    """The lines as text."""
    scale = Scale(lines, now_at=now_at, width=width)
    return [_drawn(line, scale, began_at=began_at, now_at=now_at) for line in lines]


def _drawn(line: Line, scale: Scale, *, began_at: int, now_at: int) -> str:
    after = f"+{span(max(0, line.began_at - began_at) / MICROSECONDS)}"
    took = "" if line.kind is LineKind.MARK else span(((line.ended_at or now_at) - line.began_at) / MICROSECONDS)
    state = "failed" if line.kind is LineKind.LOST else line.state.value
    bar = painted(_bar(line, scale, now_at=now_at), state)
    return f"{after:>9} {took:>8}  {bar}  {'  ' * line.depth}{named(line)}".rstrip()


def named(line: Line) -> str:
    """The subject of a line, in words."""
    name = f"{line.kind.value} {line.name}" if line.kind in (LineKind.STEP, LineKind.CHILD) else line.name
    parts = [name]
    if len(line.attempts) > 1:
        parts.append(f"{len(line.attempts)} attempts")
    if line.note:
        parts.append(line.note)
    text = ", ".join(parts)
    if line.failure is not None and line.kind is not LineKind.MARK:
        failure = line.failure
        error = f"{failure.type}: {failure.message}" if failure.message else failure.type
        return f"{text}: {' '.join(error.split())}"
    return " ".join(text.split())


def _bar(line: Line, scale: Scale, *, now_at: int) -> str:
    begin, end = scale.place(line.began_at), scale.place(line.ended_at or now_at)
    signs = [" "] * scale.width
    fill = BREAK if line.attempts else _BARS[line.kind]
    for column in range(begin, end + 1):
        signs[column] = fill
    for attempt in line.attempts:
        for column in range(scale.place(attempt.began_at), scale.place(attempt.ended_at) + 1):
            signs[column] = FAILED if attempt.failure is not None else _BARS[line.kind]
    if line.ended_at is None:
        signs[end] = GOES_ON
    elif line.kind is LineKind.MARK and line.state is LineState.FAILED:
        signs[begin] = FAILED
    return "".join(signs)
