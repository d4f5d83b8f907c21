"""A program of every guide runs unchanged on a connection to a server, or a table says what it needs the store for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.docs.page import name_of
from tests.docs.test_examples import AT_ONCE, PAGES_WITH_EXAMPLES, SECONDS_MAX, environment

pytestmark = pytest.mark.slow

NEEDS_THE_STORE = {
    "agents": "engine.checkpoints: a conversation lies in the store, beside the runs",
    "batches": "a batch of a step: servers start workflows, which keys are for, and never a bare step",
    "metrics": "the metrics of a process, which is that of the engine",
    "postgresql": "connection=: a transaction of the caller's own",
    "security": "engine.quotas and engine.audit.acting: a server knows by the key who acts",
}
PAGES = [page for page in PAGES_WITH_EXAMPLES if "outlive.Engine(" in page.read_text("utf-8")]


def play(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Play a page with servers, in a process and a folder of its own."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.connected", str(page)],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


@pytest.fixture(scope="module")
def playing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Future[subprocess.CompletedProcess[str]]]]:
    """Some pages at once; a test waits for its own."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {page: pool.submit(play, page, tmp_path_factory.mktemp(page.stem)) for page in PAGES}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run_on_a_connection(
    page: Path, playing: dict[Path, Future[subprocess.CompletedProcess[str]]]
) -> None:
    """They print what they print on an engine. One that needs the store fails, so that no row of the table is old."""
    played = playing[page].result()

    assert (played.returncode == 0) == (page.stem not in NEEDS_THE_STORE), played.stderr


def test_the_table_names_guides() -> None:
    """Each row is a guide with examples."""
    assert NEEDS_THE_STORE.keys() <= {page.stem for page in PAGES}
