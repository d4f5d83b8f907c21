"""The values that people give to commands: JSON in an argument, a file or standard input; spans and instants."""

from __future__ import annotations

import errno
import re
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, TypeVar

from outlive.cli.edge import Mistake

T = TypeVar("T")
LINES_BYTES_MAX = 256 * 1024 * 1024
_WORD = re.compile(r"[^\W\d][\w .@-]{0,80}")


def standard_input() -> TextIO:
    """Standard input, as UTF-8 in every locale; reading it raises `UnicodeDecodeError` if it is not."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    return sys.stdin


def text_of(file: Path, *, bytes_max: int | None = None) -> str:
    """The text of a file of others.

    Raises:
        OSError: it cannot be read, has more bytes than it may, or is a pipe or a device, which may have no end.
        UnicodeDecodeError: it is not text.
    """
    from outlive._platform import open_regular

    with open_regular(file) as opened:
        data = opened.read(-1 if bytes_max is None else bytes_max + 1)
    if bytes_max is not None and len(data) > bytes_max:
        raise OSError(errno.EFBIG, f"it has more than {bytes_max:,} bytes", str(file))
    return StringIO(data.decode(), newline=None).read()


def json_of(option: str, text: str) -> Any:
    """The value of an option as JSON: in the option itself, in a file, or on standard input.

    Raises:
        Mistake: it is not JSON.
    """
    import msgspec

    try:
        if text == "-":
            text = standard_input().read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        return msgspec.json.decode(text)
    except OSError as error:
        raise Mistake(f"{option} {text}: it cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Mistake(f"{option}: it is not JSON: {error}{_in_quotes(text)}") from None


def structs_in(file: str, kind: type[T]) -> list[tuple[int, T]]:
    """The lines of a file, or of standard input (`-`), each of which is JSON of one struct; with their numbers.

    Raises:
        Mistake: one of them is not.
    """
    import msgspec

    text = standard_input().read() if file == "-" else text_of(Path(file), bytes_max=LINES_BYTES_MAX)
    found: list[tuple[int, T]] = []
    for at, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                found.append((at, msgspec.json.decode(line, type=kind)))
            except msgspec.MsgspecError as error:
                raise Mistake(f"{file}, line {at}: {error}") from None
    return found


def _in_quotes(text: str) -> str:
    """Advice for a person who wrote a word and not JSON; a shell has taken the quotes."""
    return f"""; if you mean the text, write '"{text}"'""" if _WORD.fullmatch(text) else ""


def seconds_of(option: str, text: str) -> float:
    """A span that a person gives, in seconds: `90s`, `5m`, `1h30m`.

    Raises:
        Mistake: it is none, or longer than an engine takes.
    """
    from outlive._kernel.model.given import SECONDS_MAX
    from outlive._kernel.model.span import seconds_in

    seconds = seconds_in(text)
    if seconds is None:
        raise Mistake(f"{option} {text}: write a number and a unit, for example 90s, 5m, 1h30m, 7d or 8w")
    if seconds > SECONDS_MAX:
        raise Mistake(f"{option} {text}: it is longer than 100 years")
    return seconds


def moment_of(option: str, text: str) -> datetime:
    """An instant that a person gives: `2026-11-01`, `2026-11-01T06:00+01:00`, or how long ago it was: `2h`.

    Raises:
        Mistake: it is none.
    """
    from outlive._kernel.model.span import seconds_in

    is_number = text.strip().replace(".", "").isdigit()  # A number may be a year; a span has its unit here.
    if not is_number and seconds_in(text) is not None:
        return datetime.now(UTC) - timedelta(seconds=seconds_of(option, text))
    return instant_of(option, text, ", or 2h for two hours ago")


def instant_of(option: str, text: str, or_else: str = "") -> datetime:
    """An instant that a person gives: `2026-11-01`, `2026-11-01T06:00+01:00`.

    Raises:
        Mistake: it is none.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        ways = f"2026-11-01, 2026-11-01T06:00+01:00{or_else}" if or_else else "2026-11-01 or 2026-11-01T06:00+01:00"
        raise Mistake(f"{option} {text}: it is not a time; write {ways}") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
