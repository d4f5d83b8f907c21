"""Where the system has neither `/proc` nor `fcntl` nor forks, as Windows has not and macOS only in part, all goes on.

A child runs tests of the engine in a Python from which they were taken away (`other_system/sitecustomize.py`). What
the kernel tells on Linux the leases tell there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HIDING = Path(__file__).with_name("other_system")
CORE = [
    "tests/concepts/test_first_sentences.py",
    "tests/recovery/test_two_engines.py::test_a_zombie_commits_nothing",
    "tests/recovery/test_two_engines.py::test_each_run_runs_once",
    "tests/step_kinds/test_process_steps.py::test_values_cross_as_they_are_stored",
    "tests/testing/test_stores.py::test_a_run_goes_on_in_the_next_engine",
]
MORE = [
    "tests/starting/test_start.py",
    "tests/messages/test_signals.py",
    "tests/waiting/test_timers.py",
    "tests/sync/test_sync.py",
    "tests/recovery/test_two_engines.py",
    "tests/store/test_memory_conformance.py",
    "tests/store/test_sqlite_conformance.py",
]


@pytest.mark.parametrize("tests", [CORE, pytest.param(MORE, marks=pytest.mark.slow)], ids=["core", "more"])
def test_the_engine_works_on_memory_and_on_a_file(tests: list[str]) -> None:
    """Runs, recovery after the file was opened again, take-over by an expired lease, and steps in processes."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HIDING), str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header"]

    ended = subprocess.run(
        [*command, "-k", "not postgres and not kill and not processes and not one_process", *tests],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_hidden_modules_and_calls_are_really_gone() -> None:
    """The modules and calls that the tests above hide are gone in a program."""
    code = "import os, pathlib; assert not hasattr(os, 'fork'); pathlib.Path('/proc/self/stat').exists() and 1 / 0"
    environment = os.environ | {"PYTHONPATH": str(HIDING)}

    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
    assert subprocess.run([sys.executable, "-c", "import fcntl"], env=environment, stderr=subprocess.DEVNULL).returncode
