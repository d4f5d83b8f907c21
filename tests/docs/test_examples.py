"""Every example in the documentation runs as it stands, and prints what the page says it prints."""

import ast
import os
import subprocess
import sys
from codeop import CommandCompiler
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.docs.page import ROOT, blocks_of, find_pages, name_of
from tests.docs.play import ONLY_COMPILE, OUTPUT, RUN, compile_block, examples
from tests.docs.reference import SIGNATURE

SECONDS_MAX = 120
"""For a page that hangs. A test waits for 60 seconds at most, but others have been waited for meanwhile."""
AT_ONCE = 6
Played = subprocess.CompletedProcess[str]
INFOS = {RUN, ONLY_COMPILE, SIGNATURE, OUTPUT, "text", "sh", "sql", "toml", "yaml", "ini", "json", "ts", "go"}
PAGES_WITH_EXAMPLES = [page for page in find_pages() if any(block.info == RUN for block, _ in examples(page))]


@pytest.fixture(scope="module")
def playing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Future[Played]]]:
    """Several pages at once, as some of them sleep. Not all: then the first would take as long as all of them."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {page: pool.submit(play, page, tmp_path_factory.mktemp(page.stem)) for page in PAGES_WITH_EXAMPLES}
        pool.shutdown(cancel_futures=True)


def environment() -> dict[str, str]:
    """That of a process that plays a page."""
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}


def play(page: Path, folder: Path) -> Played:
    """Play one page in a process and a folder of its own: none leans on another."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.play", str(page)],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=name_of)
def test_examples_run(page: Path, playing: dict[Path, Future[Played]]) -> None:
    """From the first to the last, and each prints what the page says."""
    played = playing[page].result()

    assert played.returncode == 0, played.stderr


@pytest.mark.parametrize("page", find_pages(), ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block without a known kind would be an example that no test runs; and all Python compiles."""
    for block in blocks_of(page):
        assert block.info in INFOS, f"{name_of(page)}:{block.line}: unknown kind of block {block.info!r}"
    for block, _ in examples(page):
        compile_block(page, block)


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=name_of)
def test_examples_can_be_pasted(page: Path) -> None:
    """Into `python -m asyncio`, where an empty line ends a function or a class."""
    for block in (block for block, _ in examples(page) if block.info == RUN):
        compiler = CommandCompiler()
        compiler.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        typed: list[str] = []
        for number, line in enumerate([*block.text.splitlines(), ""], start=block.line):
            typed.append(line)
            try:
                statement = compiler("\n".join(typed), f"{name_of(page)}:{number}")
            except SyntaxError as error:
                raise AssertionError(f"{name_of(page)}:{number}: {line!r} cannot be pasted: {error}") from error
            if statement is not None:
                typed.clear()
        assert not typed, f"{name_of(page)}:{block.line}: {typed} does not end"


def test_pages_have_examples() -> None:
    """More than five pages have examples, so the checks above look at real ones."""
    assert len(PAGES_WITH_EXAMPLES) > 5


def test_an_example_that_prints_something_else_is_found(tmp_path: Path) -> None:
    """The player compares; it does not only run."""
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text output\n2\n```\n", "utf-8")

    played = play(page, tmp_path)

    assert played.returncode == 1
    assert "the example printed\n1" in played.stderr
