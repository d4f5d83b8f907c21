"""Which files count, and whether one of them has changed.

The worker process says which files it has imported. Those are watched, and with them every Python file beside one of
them, so that a module counts that was only just written. What is installed (the standard library, site-packages and
Outlive itself) does not change while a person works, and is left out. Files are compared by time and size: a few
hundred of them cost less than a millisecond, and no file system refuses to be asked.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

import outlive
from outlive.dev.place import documents_in

LOOK_SECONDS = 0.25
"""How often files are compared."""

State = dict[str, tuple[int, int]]
"""Every file with its time and its size."""


def imported_files(modules: Mapping[str, ModuleType] | None = None) -> set[str]:
    """The files that this process has imported and that a person might change."""
    installed = tuple(f"{path}{os.sep}" for path in _installed())
    found = set()
    for module in list((sys.modules if modules is None else modules).values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py"):
            file = os.path.realpath(file)
            if not file.startswith(installed):
                found.add(file)
    return found


def _installed() -> set[str]:
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return {os.path.realpath(path) for path in [*paths, str(Path(outlive.__file__).parent)]}


class Watch:
    """The files that count for one program and its flows."""

    def __init__(self, files: Iterable[Path], flows: Iterable[Path]) -> None:
        self._files = {os.path.realpath(file) for file in files}
        self._flows = tuple(flows)
        self._state = self.look()

    def add(self, files: Iterable[str]) -> None:
        """Watch these too; files that were not watched count as they are now."""
        new = set(files) - self._files
        if new:
            self._files |= new
            self._state = self.look() | self._state

    def look(self) -> State:
        """All files as they are."""
        folders = {str(Path(file).parent) for file in self._files if file.endswith(".py")}
        state: State = {}
        for folder in folders:
            _note_folder(state, folder)
        for file in {*self._files, *map(os.path.realpath, documents_in(self._flows))}:
            if file not in state:
                _note(state, file)
        return state

    def changed(self) -> list[str]:
        """The files that have changed, come or gone since this was asked last."""
        before, self._state = self._state, self.look()
        return sorted(file for file in before.keys() | self._state.keys() if before.get(file) != self._state.get(file))


def _note_folder(state: State, folder: str) -> None:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    _note(state, entry.path)
    except OSError:
        return  # It is gone; so are its files.


def _note(state: State, file: str) -> None:
    try:
        found = Path(file).stat()
    except OSError:
        return
    state[file] = (found.st_mtime_ns, found.st_size)
