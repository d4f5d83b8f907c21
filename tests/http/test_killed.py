"""The server is killed in the middle of every operation that changes something: real processes, and SIGKILL."""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.http.requests import WANTED
from proof.http.verbs import prove


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_retry_after_a_kill_has_the_answer_that_was_lost(tmp_path: Path) -> None:
    """The server dies when everything is written and nothing is answered."""
    found = await prove(f"sqlite:{tmp_path / 'verbs.db'}", sorted(WANTED), random_kills=0, seed=0)

    assert [] == [verdict for verdict in found if verdict.problem]
    assert len(WANTED) == len(found)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_retry_after_a_kill_has_the_answer_that_was_lost_on_postgresql(postgres_url: str) -> None:
    """A retry after a kill of the server has the lost answer on PostgreSQL, too, where transactions outlive the
    server."""
    found = await prove(postgres_url, sorted(WANTED), random_kills=0, seed=0)

    assert [] == [verdict for verdict in found if verdict.problem]
    assert len(WANTED) == len(found)
