"""What data can do to a terminal and to a log: be shown."""

from __future__ import annotations

import asyncio
import logging
from io import StringIO
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner

import outlive
from outlive.cli import main
from outlive.cli.terminal import LineFormatter, guarded

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


@outlive.workflow
async def terminal_fails(text: str) -> None:
    """Fails with what it was given."""
    raise ValueError(text)


async def test_text_for_people_is_shown_in_a_pipe_too(tmp_path: Path) -> None:
    """Behind it is a terminal: `runs show | less -R`. A program that wants the text has `--json`. [S14]"""
    place, hostile = f"sqlite:{tmp_path}/runs.db", "".join(HOSTILE.values())
    async with outlive.Engine(place) as engine:
        run = await engine.start(terminal_fails, hostile, id="bad")
        with pytest.raises(outlive.errors.RunFailedError):
            await run.result()

    async def piped(*args: str) -> str:
        return (await asyncio.to_thread(CliRunner().invoke, main, [*args, "--store", place])).output

    shown_there = await piped("runs", "show", "bad")
    assert "\\x1b]0;owned" in shown_there
    assert shown_there.replace("\n", "").replace("\t", "").isprintable(), shown_there
    for command in (["runs", "show", "bad"], ["runs", "list"]):
        as_json = await piped(*command, "--json")
        assert as_json.replace("\n", "").isprintable()
        assert hostile in str(texts_in(msgspec.json.decode(as_json)))
    exported = await asyncio.to_thread(CliRunner().invoke, main, ["runs", "export", "bad", "--store", place])
    async with outlive.Engine(place) as engine:
        assert exported.output == await engine.export("bad")


def texts_in(value: Any) -> Any:
    """All texts in plain data, with nothing between them that could be an escape."""
    if isinstance(value, dict):
        return Texts(each for inner in value.values() for each in texts_in(inner))
    if isinstance(value, list):
        return Texts(each for inner in value for each in texts_in(inner))
    return Texts([value] if isinstance(value, str) else [])


class Texts(list[str]):
    """Texts, joined."""

    def __str__(self) -> str:
        """All of them."""
        return "".join(self)


def test_a_message_with_line_ends_does_not_look_like_a_record_of_its_own() -> None:
    """Every line that begins a record is one of ours. [S14 S37]"""
    formatter = LineFormatter("%(levelname)s %(name)s: %(message)s")
    record = logging.LogRecord(
        "outlive", logging.WARNING, "", 0, "run x failed: %s", ("\nINFO outlive: all is well\x1b[2J",), None
    )
    lines = formatter.format(record).splitlines()

    assert [line for line in lines if not line.startswith("    ")] == ["WARNING outlive: run x failed: "]
    assert lines[1] == "    INFO outlive: all is well\\x1b[2J"
