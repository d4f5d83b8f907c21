"""Every flow in examples/flows is right by the strictest check, and the tests inside it pass."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.docs.page import ROOT

FOLDER = ROOT / "examples" / "flows"
FLOWS = sorted(FOLDER.glob("*.flow.yaml"))


def test_pages_have_flows() -> None:
    """The pages have at least twelve flows, so the tests below look at real ones."""
    assert len(FLOWS) >= 12


def test_flows_pass_the_strictest_check_and_the_tests_inside_them() -> None:
    """With the commands that the guide names, and the steps that lie beside the flows."""
    files = [*map(str, FLOWS), "--app", str(FOLDER / "steps.py")]
    checked = _outlive("flows", "check", "--strict", *files)
    assert checked.returncode == 0, checked.stdout + checked.stderr

    tested = _outlive("flows", "test", "--json", *files)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    passed = {case["file"] for case in json.loads(tested.stdout)}
    assert passed == set(map(str, FLOWS)), "each flow has a test"


def _outlive(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "outlive.cli", *args], capture_output=True, text=True, check=False)
