"""What type checkers find in a user's program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]
USES = Path(__file__).with_name("uses.py")


@pytest.mark.slow
def test_mypy_finds_the_wrong_uses_and_no_others() -> None:
    """`make type`, a part of `make test`, reads the same file with the same settings; this reads no other."""
    checked = run("mypy", "--strict", str(USES))

    assert checked.returncode == 0, checked.stdout


def test_pyright_finds_the_wrong_uses_and_no_others(tmp_path: Path) -> None:
    """By basedpyright, the same checker with everything it needs in one wheel."""
    settings = {
        "include": [str(USES)],
        "extraPaths": [str(TREE / "src")],
        "typeCheckingMode": "standard",
        "enableTypeIgnoreComments": False,  # Those are for mypy.
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))

    checked = run("basedpyright", "--project", str(tmp_path), "--pythonpath", sys.executable)

    assert checked.returncode == 0, checked.stdout


def run(tool: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", tool, *words], cwd=TREE, capture_output=True, text=True)
