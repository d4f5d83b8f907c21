"""The table of recovery scenarios names tests that exist."""

import re

import pytest

from tests.docs.page import DOCS, ROOT

ROWS = re.findall(
    r"^\| ([A-Z]{2}-[A-Z]\d+) \| [^|]+ \| `([\w/]+\.py)::(test_\w+)` \|$",
    (DOCS / "internals" / "recovery.md").read_text("utf-8"),
    flags=re.MULTILINE,
)


def test_the_table_is_read() -> None:
    """Each scenario stands in it once."""
    ids = [id for id, _, _ in ROWS]

    assert {"SF-U1", "FB-R1"} <= set(ids)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("id", "file", "test"), ROWS)
def test_scenario_has_its_test(id: str, file: str, test: str) -> None:
    """In the file that the table says."""
    assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text("utf-8"), flags=re.MULTILINE), id
