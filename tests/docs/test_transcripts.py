"""What pages show of `curl` happens so: each command is run against a real server with a worker beside it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.page import DOCS, blocks_of

PAGES = {"http-api.md": ("async def checkout", "checkout"), "remote-steps.md": ("async def publish", "publish")}
"""The pages with transcripts: what is in the program that a worker has for each, and its workflow."""
ADDRESS = "http://127.0.0.1:7717"
SECONDS_MAX = 60


@contextmanager
def process(words: list[str], folder: Path) -> Iterator[str]:
    """A process of ours; what it says when it is ready."""
    command = [sys.executable, "-m", "outlive.cli", *words, "--store", "sqlite:orders.db"]
    with (
        (folder / "log").open("a") as log,
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True) as running,
    ):
        assert running.stdout is not None
        try:
            yield running.stdout.readline()
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(SECONDS_MAX)


def steps_of(text: str) -> list[tuple[str, str]]:
    """The commands of a transcript, each with what it prints."""
    joined = text.replace("\\\n", " ")
    parts = re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]
    return [(command, output.strip()) for command, _, output in (part.partition("\n") for part in parts)]


def pattern_of(output: str) -> str:
    """What is printed, in which `...` is anything."""
    return ".*".join(re.escape(part) for part in output.split("..."))


@pytest.mark.skipif(shutil.which("curl") is None and "CI" not in os.environ, reason="curl is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_guide_print_what_it_shows(tmp_path: Path, name: str) -> None:
    """One after the other, on a store of its own."""
    mark, workflow = PAGES[name]
    blocks = blocks_of(DOCS / "guides" / name)
    program = next(block.text for block in blocks if mark in block.text)
    (transcript,) = (block.text for block in blocks if block.text.startswith("$ curl"))
    (tmp_path / "shop.py").write_text(program, "utf-8")
    steps = steps_of(transcript)
    with process(["worker", "shop.py"], tmp_path) as ready, process(["serve", "--port", "0"], tmp_path) as served:
        assert ready.startswith("ready:")
        address = served.split()[1].removesuffix("/api/v1")
        # A worker describes its workflows a moment after it is ready.
        look = f"until curl -s {address}/api/v1/workflows | grep -q {workflow}; do sleep 0.1; done"
        subprocess.run(["bash", "-c", look], check=True, timeout=SECONDS_MAX)
        for command, output in steps:
            own = ["bash", "-c", command.replace(ADDRESS, address)]
            done = subprocess.run(own, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
            shown = f"$ {own[-1]}\n{done.stdout}"
            assert re.match(pattern_of(output), done.stdout.strip(), flags=re.DOTALL), shown

    assert len(steps) > 3


def test_every_transcript_is_on_a_page_that_is_played() -> None:
    """A page with a new one is added to the table."""
    found = {page.name for page in DOCS.rglob("*.md") if any(it.text.startswith("$ curl") for it in blocks_of(page))}

    assert PAGES.keys() == found
