"""A feature is a folder and a line in a list: the engine, the HTTP API and the command line walk that list."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from outlive._features import FEATURES
from outlive.http import operations  # noqa: F401  # Importing it declares them.
from outlive.http.operation import OPERATIONS
from tests.house.greetings import FEATURE

ROOT = Path(__file__).parents[2]


def installation(folder: Path, *without: str) -> dict[str, Any]:
    """What an installation has that lacks some features, and has that of the tests if it is not one of these."""
    # A fork of a process that has imported the package would have the list of that process.
    program = "import sys, runpy; runpy.run_module('tests.house.other_features', run_name='__main__', alter_sys=True)"
    command = [sys.executable, "-c", program, f"sqlite:{folder}/features.db", *without]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_feature_in_the_list_is_taken_up(tmp_path: Path) -> None:
    """One more value in the list brings its verb, its cell, its service, its operations and its command."""
    found = installation(tmp_path)

    assert found["said"] == [{"text": "good morning", "is_answered": True}]
    assert "test.greetings" in found["cells"]
    assert {"greetings.add", "greetings.list"} < set(found["operations"])
    assert any("Show the greetings of a store." in line for line in found["shown"])
    assert found["shown"][-1] == "good morning, answered"


@pytest.mark.parametrize(
    "name", ["schedules", *(pytest.param(it.name, marks=pytest.mark.slow) for it in FEATURES if it.name != "schedules")]
)
def test_feature_can_be_left_out(tmp_path: Path, name: str) -> None:
    """Without a feature runs go on, and nothing of the feature is in the cells, in the API or in the help."""
    (feature,) = (it for it in FEATURES if it.name == name)
    found = installation(tmp_path, name, FEATURE.name)

    assert found["result"] == "hello you"
    assert found["operations"]
    assert not [it for it in found["operations"] if OPERATIONS[it].function.__module__ in feature.operations]
    assert not [line for line in found["shown"] for command in feature.commands if line.split()[:1] == [command]]
    assert "test.greetings" not in found["cells"]
