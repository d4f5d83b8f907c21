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

PAGE = DOCS / "guides" / "http-api.md"
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
def test_the_commands_of_the_guide_print_what_it_shows(tmp_path: Path) -> None:
    """One after the other, on a store of its own."""
    blocks = blocks_of(PAGE)
    program = next(block.text for block in blocks if "async def checkout" in block.text)
    transcript = next(block.text for block in blocks if block.text.startswith("$ curl"))
    (tmp_path / "shop.py").write_text(program, "utf-8")
    steps = steps_of(transcript)
    with process(["worker", "shop.py"], tmp_path) as ready, process(["serve", "--port", "0"], tmp_path) as served:
        assert ready.startswith("ready:")
        address = served.split()[1].removesuffix("/api/v1")
        # A worker describes its workflows a moment after it is ready.
        look = f"until curl -s {address}/api/v1/workflows | grep -q checkout; do sleep 0.1; done"
        subprocess.run(["bash", "-c", look], check=True, timeout=SECONDS_MAX)
        for command, output in steps:
            own = command.replace(ADDRESS, address)
            done = subprocess.run(["bash", "-c", own], capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
            shown = f"$ {own}\n{done.stdout}"
            assert re.match(pattern_of(output), done.stdout.strip(), flags=re.DOTALL), shown

    assert len(steps) > 5
