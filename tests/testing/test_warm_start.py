"""A program that tests start sees what Python itself would have shown it, though it is a copy of the nursery."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.warm_start import ROOT, SETTINGS, WarmPopen, order_for

SEEN = str(Path(__file__).with_name("seen.py"))
OURS = os.pathsep.join([str(ROOT), str(ROOT / "src")])
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Python starts every program")


def run(popen: type[subprocess.Popen[str]], command: list[str], **options: Any) -> tuple[int, list[str], str]:
    """How a program ends, and what it says."""
    pipe = subprocess.PIPE
    with popen([sys.executable, *command], stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options) as process:
        out, err = process.communicate("heard")
    return process.returncode, out.splitlines(), err


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["-m", "tests.testing.seen", "a", "b"], {"env": {**SETTINGS, "PYTHONPATH": OURS, "OWN": "1"}}),
        (["-W", "error", SEEN, "die"], {"start_new_session": True, "env": SETTINGS}),
    ],
    ids=["module", "script"],
)
def test_a_warm_program_sees_what_a_cold_one_does(tmp_path: Path, command: list[str], options: dict[str, Any]) -> None:
    """A program that starts warm sees, prints and ends as one that starts cold."""
    warm, cold = (run(popen, command, cwd=tmp_path, **options) for popen in (WarmPopen, WarmPopen.__mro__[1]))

    assert order_for([sys.executable, *command], options) is not None
    assert warm == cold
    assert warm[0] == (-9 if "die" in command else 3)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["-c", "print(1)"], {}),
        (["-m", "pytest"], {}),
        (["-O", "-m", "tests.testing.seen"], {}),
        (["-m", "tests.testing.seen"], {"env": {**os.environ, "PYTHONHASHSEED": "7"}}),
        (["-m", "tests.testing.seen"], {"env": {**os.environ, "PYTHONPATH": "/elsewhere"}}),
    ],
)
def test_another_python_is_started_by_python(command: list[str], options: dict[str, Any]) -> None:
    """Programs that are not ours, other switches, other settings, other modules."""
    assert order_for([sys.executable, *command], options) is None
