"""A copy of a whole store, made while workers go on.

The copy is one SQLite file, whatever the store is. It is written under another name, checked, made durable, and then
given its own: a file of that name is a whole copy.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from outlive._features.fsck.checker import Checker
from outlive._features.moving.moving import copy_store
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive._platform import fsync_folder
from outlive.engine.url import is_server, store_for
from outlive.errors import ConfigurationError, OutliveError
from outlive.errors.store import SchemaTooOldError

SUFFIX = ".unfinished"
PROBLEMS_SHOWN = 3


class Backup(NamedTuple):
    """The result of a backup."""

    path: str
    size: int
    """In bytes."""
    trees: int | None
    """Trees that were checked; None if the copy was not checked."""


async def back_up(url: str, target: Path, *, check: bool, said: Callable[[str], None]) -> Backup:
    """Copy the store of a URL into a new file.

    Raises:
        ConfigurationError: the target exists, or the store cannot be copied.
        OutliveError: the store cannot be read, or the copy is not whole; no file is left behind.
    """
    if url.startswith("memory:"):
        raise ConfigurationError("a store in memory belongs to its process; nothing can be copied from outside")
    target = _free(target)
    part = target.with_name(f"{target.name}.{os.getpid()}{SUFFIX}")
    try:
        if is_server(url):
            await _copy_server(url, part, said)
        else:
            await _copy_file(url, part, said)
        trees = await _check(part, said) if check else None
        _clear(part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
        fsync_folder(target.parent)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
            _clear(part)
    return Backup(str(target), target.stat().st_size, trees)


def _free(target: Path) -> Path:
    """The whole path of a file that can be made."""
    path = target.expanduser().resolve()
    if path.exists():
        raise ConfigurationError(f"{path} exists; name a file that does not, or delete it first")
    if not path.parent.is_dir():
        raise ConfigurationError(f"there is no folder {path.parent}; create it first")
    return path


async def _copy_file(url: str, part: Path, said: Callable[[str], None]) -> None:
    from outlive._kernel.store.sqlite.backup import copy_file

    is_wanted = True

    def tell(left: int, count: int) -> None:
        if not is_wanted:
            raise OutliveError("the backup was cancelled")
        if count:
            said(f"{100 * (count - left) // count} % of {count:,} pages")

    try:
        await asyncio.to_thread(lambda: copy_file(_path_in(url), part, said=tell))
    finally:
        is_wanted = False  # The thread goes on without its caller, and has to know.


def _path_in(url: str) -> Path:
    return Path(url.partition(":")[2]).expanduser().resolve()


async def _copy_server(url: str, part: Path, said: Callable[[str], None]) -> None:
    from outlive._kernel.store.postgres import PostgresStore

    clock = SystemClock()
    source = store_for(url, clock=clock.now)
    assert isinstance(source, PostgresStore)
    await source.open(migrate=False)
    try:
        target = store_for(f"sqlite:{part}", clock=clock.now)
        await target.open()
        try:
            async with source.one_moment():
                await copy_store(source, target, said=said)
        finally:
            await target.close()
    finally:
        await source.close()


async def _check(part: Path, said: Callable[[str], None]) -> int | None:
    store: Store = store_for(f"sqlite:{part}", clock=SystemClock().now)
    try:
        await store.open(migrate=False)
    except SchemaTooOldError as error:
        said(f"not checked: it has schema {error.found} of an earlier release; its own outlive fsck can check it")
        return None
    try:
        checker = Checker(store)
        problems = [problem async for problem in checker.problems()]
    finally:
        await store.close()
    if problems:
        shown = "; ".join(map(str, problems[:PROBLEMS_SHOWN]))
        raise OutliveError(
            f"the copy has {len(problems)} problems and was not kept: {shown}. If outlive fsck finds them in the store "
            f"too, --no-check copies it as it is"
        )
    return checker.trees


def _clear(part: Path) -> None:
    from outlive._kernel.store.sqlite.backup import remove_side_files

    remove_side_files(part)
