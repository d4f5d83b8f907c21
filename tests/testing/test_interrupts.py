"""The tests pass in the background too, where SIGINT is ignored: what they start can be interrupted all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.interrupts import ignored_interrupts

ROOT = Path(__file__).parents[2]
CHILD = "import signal; print(signal.getsignal(signal.SIGINT).__name__)"
TESTS = f"import subprocess, sys, tests.conftest; subprocess.run([sys.executable, '-c', {CHILD!r}], check=True)"


def test_children_of_the_tests_can_be_interrupted_though_sigint_was_inherited_as_ignored() -> None:
    """A process that loads the tests begins its children with Python's own handler."""
    with ignored_interrupts():
        tests = subprocess.run([sys.executable, "-c", TESTS], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)

    assert "default_int_handler\n" == tests.stdout
