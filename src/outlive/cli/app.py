"""The user's program as a command names it: a file, a module, or a module and something in it.

A file is imported under the name that an import would give it, from the folder that is the root of its packages. So the
classes and functions in it have one name in this process, in the processes of steps and in the journals, whichever way
the program is started.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from outlive.cli.edge import Mistake

OWN = f"{Path(__file__).parents[1]}{os.sep}"
"""Where Outlive itself is installed: an error that is raised there is about a line of the user."""


def load(place: str) -> tuple[ModuleType, Any]:
    """Import what `place` names: `app.py`, `shop.app`, or either with `:name`; the module, and what has the name.

    Raises:
        Mistake: it cannot be imported, or there is nothing of this name.
    """
    source, _, name = place.partition(":")
    module = _import_file(Path(source)) if source.endswith(".py") else _import(source, shown=source)
    found = module
    for part in name.split(".") if name else ():
        if not hasattr(found, part):
            raise Mistake(f"{source} has no {name!r}{_names_in(module)}")
        found = getattr(found, part)
    return module, found


def no_file(file: Path) -> str:
    """A message that a file does not exist, and which file may be meant."""
    beside = [each.name for each in file.parent.glob(f"*{file.suffix}")] if file.parent.is_dir() else []
    near = get_close_matches(file.name, beside, 1)
    return f"there is no file {file}" + (f"; is it {file.with_name(near[0])}?" if near else "")


def _names_in(module: ModuleType) -> str:
    """The names in a program that a command can use."""
    from outlive._kernel.define.workflow import Workflow
    from outlive.engine import Engine

    names = sorted(name for name, it in vars(module).items() if isinstance(it, Workflow | Engine))
    return f"; it has {', '.join(names)}" if names else ""


def _import_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise Mistake(no_file(file))
    root, names = file.resolve().parent, [file.stem]
    if file.stem == "__init__":
        names = []
    while (root / "__init__.py").is_file():
        names.insert(0, root.name)
        root = root.parent
    name = ".".join(names)
    if not all(part.isidentifier() for part in names):
        raise Mistake(f"{file} cannot be imported as {name!r}: rename it to a name that Python can import")
    _see_folder_of_command()
    sys.path.insert(0, str(root))  # Before that folder, which may have a file of the same name.
    module = _import(name, shown=str(file))
    found = getattr(module, "__file__", None)
    if found is None or Path(found).resolve() != file.resolve():
        raise Mistake(f"{file} is hidden by {found or 'a built-in module'}, which has the same name: rename it")
    return module


def _see_folder_of_command() -> None:
    """Let what stands in the folder where the command is given be imported, as `python -m` does it."""
    if "" not in sys.path:
        sys.path.insert(0, "")


def _import(name: str, *, shown: str) -> ModuleType:
    _see_folder_of_command()
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        raise Mistake(
            f'{shown} ends the process when it is imported; put what it does under `if __name__ == "__main__":`'
        ) from error
    except BaseException as error:
        raise Mistake(f"{shown} cannot be imported: {_told(error)}") from error


def _told(error: BaseException) -> str:
    """An error in one line, and the line of the program that it came from."""
    line = traceback.format_exception_only(error)[-1].strip()
    frames = [it for it in traceback.extract_tb(error.__traceback__) if not it.filename.startswith("<frozen")]
    frames = [it for it in frames if it.filename not in (__file__, importlib.__file__)]
    frames = [it for it in frames if not it.filename.startswith(OWN)] or frames
    return f"{line} ({frames[-1].filename}:{frames[-1].lineno})" if frames else line
