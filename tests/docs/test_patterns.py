"""Every pattern in examples/patterns is short, runs, and prints what it says that it prints."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest

from tests.docs.page import ROOT

PATTERNS = sorted((ROOT / "examples" / "patterns").glob("*.py"))
LINES_MAX = 80
PRINTS = "\n# Prints:\n"


def test_patterns_are_found() -> None:
    """There are at least twelve patterns, so the test below looks at real ones."""
    assert len(PATTERNS) >= 12


@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_pattern_is_short_and_prints_what_it_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, and in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    text = path.read_text("utf-8")
    code, _, printed = text.partition(PRINTS)
    spec = importlib.util.spec_from_file_location(f"patterns_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    asyncio.run(asyncio.wait_for(module.main(), 30))

    assert capsys.readouterr().out == printed.replace("# ", "")
    assert len(code.splitlines()) <= LINES_MAX
