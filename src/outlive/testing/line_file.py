"""Append-only files of JSON lines that many processes write and none of them can spoil by dying.

A line is written with one `write` on a file opened with `O_APPEND`, so a process that is killed leaves a whole line or
none, and lines of several processes do not mix.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

encode = msgspec.json.Encoder().encode


def append(path: str | Path, line: msgspec.Struct, *, sync: bool = False) -> None:
    """Write one line; with `sync` it survives the machine, without it only the process."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, encode(line) + b"\n")
        if sync:
            os.fsync(file)
    finally:
        os.close(file)


class Tail(Generic[T]):
    """Reads such a file as it grows."""

    def __init__(self, path: Path, type: type[T]) -> None:  # noqa: A002 (what a reader expects)
        self._path = path
        self._decode = msgspec.json.Decoder(type).decode
        self._offset = 0
        self.lines: list[T] = []

    def look(self) -> list[T]:
        """Take in what is new; the lines that are."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        new = [self._decode(line) for line in whole.split(b"\n") if line]
        self.lines += new
        return new


def read(path: Path, type: type[T]) -> list[T]:  # noqa: A002 (what a reader expects)
    """All lines of such a file; none if none was written."""
    tail = Tail(path, type)
    return tail.look()
