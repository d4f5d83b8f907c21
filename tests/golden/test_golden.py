"""Every history that was ever made golden replays, and together they hold every kind of event."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from outlive._kernel.journal.codec import open_journal
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.journal.history import read_history
from outlive.testing import replay
from tests.golden.make import ALL_STORIES

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_history_replays(path: Path) -> None:
    """With the workflows that wrote it."""
    assert replay(path) == [path]


def test_golden_histories_hold_every_kind_of_event() -> None:
    """A kind that no story replays may change its meaning unseen: the commit that adds one adds a story with it."""
    held = {type(event).__name__ for path in FILES for event in events_of(path)}
    known = {kind.__name__ for kind in get_args(AnyEvent)}

    assert known == held


def test_every_story_has_its_file() -> None:
    """`python -m tests.golden.make` writes the missing ones."""
    assert set(ALL_STORIES) <= {path.stem for path in FILES}


def events_of(path: Path) -> list[AnyEvent]:
    """The events of a history, verified."""
    history = read_history(path.read_text("utf-8"), source=str(path))
    return open_journal(history.rows, nonce=history.head.nonce, run_id=history.head.root_id)
