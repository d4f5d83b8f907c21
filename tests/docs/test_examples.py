"""Every example in the documentation runs as it stands, and prints what the page says it prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.page import ROOT, blocks_of, find_pages, name_of
from tests.docs.play import ONLY_COMPILE, OUTPUT, RUN, compile_block, examples

SECONDS_MAX = 30
INFOS = {RUN, ONLY_COMPILE, OUTPUT, "text", "sh", "sql"}
PAGES_WITH_EXAMPLES = [page for page in find_pages() if any(block.info == RUN for block, _ in examples(page))]


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=name_of)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    """Each page in a process and a folder of its own, so that no page leans on another one."""
    played = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.play", str(page)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )

    assert played.returncode == 0, played.stderr


@pytest.mark.parametrize("page", find_pages(), ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block without a known kind would be an example that nobody runs; and all Python compiles."""
    for block in blocks_of(page):
        assert block.info in INFOS, f"{name_of(page)}:{block.line}: unknown kind of block {block.info!r}"
    for block, _ in examples(page):
        compile_block(page, block)


def test_there_are_examples() -> None:
    """The checks above look at real examples, not at an empty folder."""
    assert len(PAGES_WITH_EXAMPLES) > 5


def test_an_example_that_prints_something_else_is_found(tmp_path: Path) -> None:
    """The player compares; it does not only run."""
    page = ROOT / "docs" / "internals" / "replay.md"
    text = "```python\nprint(1)\n```\n```text output\n2\n```\n"
    wrong = tmp_path / page.name
    wrong.write_text(text, "utf-8")
    program = f"""
import tests.docs.page, tests.docs.play, pathlib
tests.docs.page.ROOT = pathlib.Path({str(tmp_path)!r})
tests.docs.play.play(pathlib.Path({str(wrong)!r}))
"""
    played = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)

    assert played.returncode == 1
    assert "the example printed" in played.stderr
