"""What pages show of `curl` happens so: each command is run against a real server with a worker beside it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.page import DOCS, blocks_of

PAGES = {"http-api.md": ("async def checkout", "checkout"), "remote-steps.md": ("async def publish", "publish")}
"""The pages with transcripts of `outlive serve`: what is in the program that a worker has, and its workflow."""
OWN_SERVER = "fastapi.md"
"""The page with a transcript of a server that it shows itself."""
ADDRESS, OWN_ADDRESS = "http://127.0.0.1:7717", "http://127.0.0.1:8000"
SECONDS_MAX = 60
with_curl = pytest.mark.skipif(shutil.which("curl") is None and "CI" not in os.environ, reason="curl is not installed")


@contextmanager
def process(words: list[str], folder: Path) -> Iterator[str]:
    """A process of ours; what it says when it is ready."""
    with started(["outlive.cli", *words, "--store", "sqlite:orders.db"], folder) as running:
        assert running.stdout is not None
        yield running.stdout.readline()


@contextmanager
def started(words: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A module of Python that runs, and is asked to stop at the end."""
    command = [sys.executable, "-m", *words]
    with (
        (folder / "log").open("a") as log,
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True) as running,
    ):
        try:
            yield running
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


def transcript_of(name: str) -> list[tuple[str, str]]:
    """The commands that a guide shows with what they print."""
    (transcript,) = (block.text for block in blocks_of(DOCS / "guides" / name) if block.text.startswith("$ curl"))
    return steps_of(transcript)


def says(command: str, folder: Path) -> str:
    """What a command prints."""
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX, check=True
    )
    return done.stdout


@with_curl
@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_guide_print_what_it_shows(tmp_path: Path, name: str) -> None:
    """One after the other, on a store of its own."""
    mark, workflow = PAGES[name]
    blocks = blocks_of(DOCS / "guides" / name)
    program = next(block.text for block in blocks if mark in block.text)
    (tmp_path / "shop.py").write_text(program, "utf-8")
    steps = transcript_of(name)
    with process(["worker", "shop.py"], tmp_path) as ready, process(["serve", "--port", "0"], tmp_path) as served:
        assert ready.startswith("ready:")
        address = served.split()[1].removesuffix("/api/v1")
        # A worker describes its workflows a moment after it is ready.
        look = f"until curl -s {address}/api/v1/workflows | grep -q {workflow}; do sleep 0.1; done"
        subprocess.run(["bash", "-c", look], check=True, timeout=SECONDS_MAX)
        for command, output in steps:
            said = says(command.replace(ADDRESS, address), tmp_path)
            assert re.match(pattern_of(output), said.strip(), flags=re.DOTALL), f"$ {command}\n{said}"

    assert len(steps) > 3


@with_curl
def test_the_orders_of_the_fastapi_guide_go_as_it_shows(tmp_path: Path) -> None:
    """With its two files and its server. A run goes on while people look, so a look is repeated until it shows that."""
    for block in blocks_of(DOCS / "guides" / OWN_SERVER):
        first = block.text.partition("\n")[0].removeprefix("# ")
        if first in ("shop.py", "web.py"):
            (tmp_path / first).write_text(block.text, "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    steps = transcript_of(OWN_SERVER)
    with started(["uvicorn", "web:app", "--port", address.rpartition(":")[2]], tmp_path):
        says(f"until curl -s {address}/outlive/health/live; do sleep 0.1; done", tmp_path)
        for command, output in steps:
            own = command.replace(OWN_ADDRESS, address)
            look = f"until {own} | grep -xF -- {shlex.quote(output)}; do sleep 0.1; done"
            assert output == says(own if " -X " in own else look, tmp_path).strip()

    assert len(steps) > 3


def test_every_transcript_is_on_a_page_that_is_played() -> None:
    """A page with a new one is added to the table."""
    found = {page.name for page in DOCS.rglob("*.md") if any(it.text.startswith("$ curl") for it in blocks_of(page))}

    assert {*PAGES, OWN_SERVER} == found
