"""Every example in the documentation runs as it stands, and prints what the page says it prints."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.page import ROOT, blocks_of, find_pages, name_of
from tests.docs.play import ONLY_COMPILE, OUTPUT, RUN, compile_block, examples

SECONDS_MAX = 60
INFOS = {RUN, ONLY_COMPILE, OUTPUT, "text", "sh", "sql"}
PAGES_WITH_EXAMPLES = [page for page in find_pages() if any(block.info == RUN for block, _ in examples(page))]


@pytest.fixture(scope="module")
def playing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, subprocess.Popen[str]]]:
    """All pages at once, as some of them sleep; each in a process and a folder of its own: none leans on another."""
    playing = {page: start(page, tmp_path_factory.mktemp(page.stem)) for page in PAGES_WITH_EXAMPLES}
    yield playing
    for process in playing.values():
        process.kill()
        process.communicate()


def start(page: Path, folder: Path) -> subprocess.Popen[str]:
    """Begin to play one page."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.docs.play", str(page)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=name_of)
def test_examples_run(page: Path, playing: dict[Path, subprocess.Popen[str]]) -> None:
    """From the first to the last, and each prints what the page says."""
    process = playing[page]
    _, told = process.communicate(timeout=SECONDS_MAX)

    assert process.returncode == 0, told


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
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text output\n2\n```\n", "utf-8")

    process = start(page, tmp_path)
    _, told = process.communicate(timeout=SECONDS_MAX)

    assert process.returncode == 1
    assert "the example printed\n1" in told
