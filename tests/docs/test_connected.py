"""Every example of a guide runs unchanged on a connection to a server, or a table says what it needs the store for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.docs.page import name_of
from tests.docs.play import examples
from tests.docs.test_examples import AT_ONCE, PAGES_WITH_EXAMPLES, SECONDS_MAX, environment

pytestmark = pytest.mark.slow

NEEDS_THE_STORE = {
    "agents": {"engine.checkpoints": "a conversation lies in the store, beside the runs"},
    "batches": {
        "start_batch(import_row": "a batch of a step: servers start workflows, which keys name, and not bare steps",
        "start_batch(price_of": "the same",
        "start_batch(mail": "the same",
    },
    "metrics": {"metrics.exposition(engine)": "the metrics of a process, which is that of the engine"},
    "postgresql": {"connection=": "a transaction of the caller's own"},
    "security": {
        "acme.quotas": "a key of a namespace cannot change the quota of the namespace",
        'engine = outlive.Engine("memory:", worker=False)': "engine.audit.acting: a server knows by the key who acts",
    },
}
"""By guide: text of the examples that need the store, each with the reason."""
PAGES = [page for page in PAGES_WITH_EXAMPLES if "outlive.Engine(" in page.read_text("utf-8")]


def play(page: Path, folder: Path, of_the_store: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Play a page with servers, in a process and a folder of its own. Examples with one of these texts get an
    engine."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.docs.connected", str(page), *of_the_store],
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
        yield {
            page: pool.submit(play, page, tmp_path_factory.mktemp(page.stem), NEEDS_THE_STORE.get(page.stem, ()))
            for page in PAGES
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run_on_a_connection(
    page: Path, playing: dict[Path, Future[subprocess.CompletedProcess[str]]]
) -> None:
    """Every example of a guide prints on a connection what it prints on an engine."""
    played = playing[page].result()

    assert played.returncode == 0, played.stderr


@pytest.mark.parametrize(("guide", "text"), [(guide, text) for guide, rows in NEEDS_THE_STORE.items() for text in rows])
def test_an_example_in_the_table_fails_on_a_connection(guide: str, text: str, tmp_path: Path) -> None:
    """An example that is said to need the store fails on a connection, so no row of the table is out of date."""
    page = next(page for page in PAGES if page.stem == guide)
    assert any(text in block.text for block, _ in examples(page))

    assert play(page, tmp_path, [each for each in NEEDS_THE_STORE[guide] if each != text]).returncode != 0


def test_the_table_names_guides() -> None:
    """Each row is a guide with examples."""
    assert NEEDS_THE_STORE.keys() <= {page.stem for page in PAGES}
