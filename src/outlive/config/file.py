"""The file with the settings: which one it is, what it holds, and on which line.

The folder where a program starts and those above it are looked through; the first one with an `outlive.toml`, or with
a `pyproject.toml` that has `[tool.outlive]`, counts. OUTLIVE_CONFIG names a file instead.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from outlive._platform import is_trusted_owner
from outlive.errors.outside import SettingsError

FILE = "outlive.toml"
PROJECT = "pyproject.toml"
PROJECT_TABLE = ("tool", "outlive")
NAMED_BY = "OUTLIVE_CONFIG"
FILE_BYTES_MAX = 1024 * 1024

Path_ = tuple[str, ...]


class SettingsFile(NamedTuple):
    """A file of settings."""

    path: Path
    table: dict[str, Any]
    """The settings in it."""
    text: str

    @property
    def name(self) -> str:
        """The name of the file for people: its name in this folder, else its whole path."""
        try:
            return str(self.path.relative_to(Path.cwd()))
        except ValueError:
            return str(self.path)

    def lines(self) -> dict[Path_, int]:
        """The line of every setting, by its path."""
        skipped = len(PROJECT_TABLE) if self.path.name == PROJECT else 0
        return {path[skipped:]: line for path, line in _lines(self.text)}


def find_file(
    environ: Mapping[str, str] = os.environ, *, named: str | os.PathLike[str] | None = None
) -> SettingsFile | None:
    """The file that is named, by the caller or by OUTLIVE_CONFIG, or the nearest one; None if there is none.

    Raises:
        SettingsError: it cannot be read, or is not one that may be trusted.
    """
    name = named or environ.get(NAMED_BY)
    if name:
        return read_file(Path(name)) or SettingsFile(Path(name), {}, "")
    here = Path.cwd()
    for folder in (here, *here.parents):
        own, project = folder / FILE, folder / PROJECT
        found = read_file(project) if project.is_file() else None
        if own.is_file():
            if found is not None:
                reason = f"[tool.outlive] in {PROJECT} of the same folder has settings too; keep them in one file"
                raise SettingsError(str(own), "", reason)
            found = read_file(own)
        if found is not None:
            if folder != here:
                _check_owner(found.path)
            return found
    return None


def read_file(path: Path) -> SettingsFile | None:
    """The content of a settings file; None for a `pyproject.toml` without settings of ours.

    Raises:
        SettingsError: it cannot be read.
    """
    try:
        data = path.read_bytes()
        if len(data) > FILE_BYTES_MAX:
            raise SettingsError(str(path), "", f"it is larger than {FILE_BYTES_MAX} bytes")
        text = data.decode("utf-8")
        table: Any = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(str(path), "", str(error)) from None
    if path.name == PROJECT:
        for part in PROJECT_TABLE:
            table = table.get(part) if isinstance(table, dict) else None
        if table is None:
            return None
        if not isinstance(table, dict):
            raise SettingsError(str(path), ".".join(PROJECT_TABLE), "it is a table; write [tool.outlive]")
    return SettingsFile(path, table, text)


def _check_owner(path: Path) -> None:
    """Refuse the file of another user that lies in a folder above: its settings say which programs may run."""
    if not is_trusted_owner(path):
        reason = f"it belongs to another user; set {NAMED_BY} to use it, or put an {FILE} of your own into this folder"
        raise SettingsError(str(path), "", reason)


def _lines(text: str) -> Iterator[tuple[Path_, int]]:
    """Every path of a TOML text with the line on which it begins.

    The parser of the standard library gives no lines. So the text is given to it statement by statement: lines are
    added until they can be read.
    """
    base: Path_ = ()
    statement: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        statement.append(line)
        try:
            table = tomllib.loads("\n".join(statement))
        except tomllib.TOMLDecodeError:
            continue
        first = number - len(statement) + 1
        if statement[0].lstrip().startswith("["):
            base = _header(table)
            yield from ((base[:depth], first) for depth in range(1, len(base) + 1))
        else:
            yield from ((base + path, first) for path in _paths(table))
        statement = []


def _header(table: Any) -> Path_:
    path: Path_ = ()
    while isinstance(table, dict) and table:
        ((key, table),) = table.items()
        path = (*path, key)
    return path


def _paths(table: dict[str, Any]) -> Iterator[Path_]:
    for key, value in table.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *path) for path in _paths(value))
