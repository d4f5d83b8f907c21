"""The screen of the demo while it works: a few lines that refresh on a terminal, one line per change elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

BAR_WIDTH = 30
CLEAR = "\x1b[{lines}F\x1b[J"
"""Up some lines to their beginning, and clear from there."""


class Screen:
    """Where the demo speaks. What is said stays; the bars are drawn again below it."""

    def __init__(self, out: TextIO, *, is_quiet: bool = False) -> None:
        self._out = out
        self._is_quiet = is_quiet
        self._is_terminal = out.isatty()
        self._drawn: list[str] = []

    def say(self, text: str) -> None:
        """Say something that stays."""
        if self._is_quiet:
            return
        bars = self._wipe()
        self._out.write(f"{text}\n")
        self._draw(bars)

    def show(self, bars: Sequence[tuple[str, int, int]], notes: Sequence[str]) -> None:
        """Show how far things are: (name, done, of all), then a line each about the workers."""
        if self._is_quiet:
            return
        if self._is_terminal:
            lines = [f"  {name:<10} {_bar(done, of)}  {done} of {of}" for name, done, of in bars]
            lines += [f"  {note}" for note in notes]
            if lines != self._drawn:
                self._wipe()
                self._draw(lines)
        else:
            # A log wants to know that things move, not each of their moves.
            line = ", ".join(f"{name} {done // _stride(of) * _stride(of)}+ of {of}" for name, done, of in bars)
            if [line] != self._drawn:
                self._drawn = [line]
                self._out.write("  " + ", ".join(f"{name} {done}" for name, done, _ in bars) + "\n")
                self._out.flush()

    def close(self) -> None:
        """Leave the last bars standing."""
        self._drawn = []

    def _wipe(self) -> list[str]:
        drawn, self._drawn = self._drawn, []
        if drawn and self._is_terminal:
            self._out.write(CLEAR.format(lines=len(drawn)))
        return drawn

    def _draw(self, lines: list[str]) -> None:
        self._drawn = lines
        if self._is_terminal:
            self._out.writelines(f"{line}\n" for line in lines)
        self._out.flush()


def _bar(done: int, of: int) -> str:
    filled = BAR_WIDTH * done // of
    return "#" * filled + "." * (BAR_WIDTH - filled)


def _stride(of: int) -> int:
    """How many make a change worth a line in a log."""
    return max(1, of // 4)
