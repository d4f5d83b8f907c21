"""What data can do to a terminal and to a log: be shown."""

from __future__ import annotations

import logging
from io import StringIO

import click
import pytest

from outlive.cli.terminal import LineFormatter, guarded, shown

HOSTILE = {
    "a title": "\x1b]0;owned\x07",
    "a cursor": "\x1b[2K\x1b[1A",
    "a question": "\x1b[6n",
    "eight bits": "\x9b2J",
    "a line over another": "done\rfail",
    "a direction": "\u202egnp.exe\u2066",
    "a bell": "\x07\x08\x00",
    "another line end": "a\u2028b\x0bc\x0cd",
}


class Screen(StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_terminal_shows_what_it_would_obey(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No control character but line ends and tabs reaches it, and no mark of direction; our colours do. [S14]"""
    screen = Screen()
    monkeypatch.setattr("sys.stdout", guarded(screen))
    click.echo(click.style("failed", fg="red") + f"\t{text}")
    written = screen.getvalue()

    assert written.startswith("\x1b[31mfailed\x1b[0m\t")
    rest = written.removeprefix("\x1b[31mfailed\x1b[0m\t").removesuffix("\n")
    assert rest.isprintable(), rest


def test_a_pipe_gets_what_was_written() -> None:
    """A program reads it."""
    pipe = StringIO()

    assert guarded(pipe) is pipe
    assert shown("plain ü 🙂\n\t") == "plain ü 🙂\n\t"


def test_a_message_with_line_ends_does_not_look_like_a_record_of_its_own() -> None:
    """Every line that begins a record is one of ours. [S14 S37]"""
    formatter = LineFormatter("%(levelname)s %(name)s: %(message)s")
    record = logging.LogRecord(
        "outlive", logging.WARNING, "", 0, "run x failed: %s", ("\nINFO outlive: all is well\x1b[2J",), None
    )
    lines = formatter.format(record).splitlines()

    assert [line for line in lines if not line.startswith("    ")] == ["WARNING outlive: run x failed: "]
    assert lines[1] == "    INFO outlive: all is well\\x1b[2J"
