"""Archives: runs that are deleted, as compressed files of the trees that `export` writes, one behind the other.

A file appears under its name when all of it is on the disk: it is written under another one first. So a name that is
there is a whole file, and what is in it may be deleted.

A place that is a URL is written with fsspec, which is an extra (`outlive[fsspec]`). There the file is written under its
name and looked at afterwards: an object store shows whole objects only.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import zlib
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from outlive._kernel.model.instant import MICROSECONDS
from outlive._platform import fsync_folder, open_private, open_regular
from outlive.errors.program import MissingExtraError
from outlive.errors.store import ArchiveError, HistoryFormatError

SUFFIX = ".jsonl.gz"
TREE_BYTES_MAX = 1024 * 1024 * 1024
_HEAD = b'{"outlive":"history"'


class Archive:
    """A place for archives of runs: a folder, or an fsspec URL."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place = os.fspath(place)
        if _is_url(self.place):
            _fsspec(self.place)  # Refused when the engine is made, and not when the first run is to go.

    async def write(self, trees: list[str], *, at: int, mark: str) -> str:
        """Write a file with these trees, durably; where it is. `at` and `mark` make its name one of its own.

        Raises:
            ArchiveError: there is no such file.
        """
        name = f"runs-{datetime.fromtimestamp(at / MICROSECONDS, UTC):%Y%m%dT%H%M%S}-{mark}{SUFFIX}"
        put = _put_url if _is_url(self.place) else _put_file
        try:
            return await asyncio.to_thread(put, self.place, name, trees)
        except Exception as error:  # A file system behind fsspec may raise anything.
            raise ArchiveError(self.place, f"{type(error).__name__}: {error}") from error


def read_archive(path: str | os.PathLike[str], *, tree_bytes_max: int = TREE_BYTES_MAX) -> Iterator[str]:
    """The trees in an archive, one after the other, each as `engine.import_run` takes it. All of the file is read
    before the first one is given, and no more than one of them is unpacked at a time.

        for tree in outlive.retention.read_archive("archive/runs-20260711T093000-1f0c.jsonl.gz"):
            await engine.import_run(tree)

    Args:
        tree_bytes_max: a tree of more bytes is refused: a small file can unpack to a thousand times its size.

    Raises:
        HistoryFormatError: it is not an archive, or was cut or changed.
    """
    place = os.fspath(path)
    try:
        packed = _read(place)
        deque(_trees_in(packed, place, tree_bytes_max), maxlen=0)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise HistoryFormatError(place, 1, f"it is not an archive of runs: {error}") from error
    yield from _trees_in(packed, place, tree_bytes_max)


def _trees_in(packed: bytes, place: str, tree_bytes_max: int) -> Iterator[str]:
    lines: list[bytes] = []
    size = number = 0
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
        while line := file.readline(tree_bytes_max - size + 1):
            number += 1
            if line.startswith(_HEAD) and lines:
                yield b"".join(lines).decode()
                lines, size = [], 0
            elif not lines and not line.startswith(_HEAD):
                raise HistoryFormatError(place, number, "it is not an archive of runs: a tree begins with another line")
            size += len(line)
            if size > tree_bytes_max:
                raise HistoryFormatError(place, number, f"a tree has more than tree_bytes_max={tree_bytes_max:,} bytes")
            lines.append(line)
    if lines:
        yield b"".join(lines).decode()


def _packed(trees: list[str]) -> bytes:
    return gzip.compress("".join(trees).encode(), mtime=0)


def _put_file(folder: str, name: str, trees: list[str]) -> str:
    place = Path(folder).expanduser()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, part = place / name, place / f".{name}.part"
    with open_private(part) as file:
        file.write(_packed(trees))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    fsync_folder(place)
    return str(path)


def _put_url(url: str, name: str, trees: list[str]) -> str:
    files, root = _fsspec(url).core.url_to_fs(url)
    path, data = f"{root.rstrip('/')}/{name}", _packed(trees)
    files.makedirs(root, exist_ok=True)
    files.pipe_file(path, data)
    written = files.size(path)
    if written != len(data):
        raise OSError(f"{path} has {written} bytes instead of {len(data)}")
    return f"{url.rstrip('/')}/{name}"


def _read(place: str) -> bytes:
    if not _is_url(place):
        with open_regular(Path(place).expanduser()) as file:
            return file.read()
    files, path = _fsspec(place).core.url_to_fs(place)
    packed: bytes = files.cat_file(path)
    return packed


def _is_url(place: str) -> bool:
    return "://" in place


def _fsspec(url: str) -> Any:
    try:
        return import_module("fsspec")
    except ImportError:
        raise MissingExtraError(f"the archive {url}", "fsspec", "fsspec") from None
