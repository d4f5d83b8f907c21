"""What the figures were taken on: without it a figure cannot be compared with another day's."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sqlite3
import subprocess
from pathlib import Path

PACKAGES = ("outlive", "dbos", "SQLAlchemy", "apsw", "msgspec", "psycopg", "asyncpg", "uvloop")

Facts = dict[str, str | int | float | None]


def machine_facts(directory: Path) -> Facts:
    """Processor, memory, file system under the databases, load, and versions."""
    facts: Facts = {
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "file_system": file_system(directory),
        "load_1min": os.getloadavg()[0],
        "python": platform.python_version(),
        "sqlite3": sqlite3.sqlite_version,
        "commit": commit_id(),
    }
    return facts | {name: version_of(name) for name in PACKAGES}


def version_of(package: str) -> str | None:
    """The installed version of a package, if it is installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def processor_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def file_system(directory: Path) -> str:
    """The type of the file system that holds this directory: on a tmpfs a commit costs nothing."""
    home = directory.resolve()
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    # Of two mounts at the same point the later one hides the earlier.
    best = ("", "unknown")
    for point, kind in mounts:
        if home.is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def commit_id() -> str | None:
    """The commit of the repository, marked if the tree differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    said = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return said.stdout.strip() or None
