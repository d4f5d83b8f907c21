"""`examples/patterns/streaming.py`: what a reader shows in the end, wherever its connection was lost."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from outlive.testing import TestEngine

EXAMPLE = Path(__file__).parents[2] / "examples" / "patterns" / "streaming.py"


@pytest.fixture(scope="module")
def streaming() -> Any:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("patterns_streaming", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_page_shows_the_reply_that_counts(streaming: Any) -> None:
    """Three words of the attempt that failed, then all of the next one, and nothing is read twice."""
    async with TestEngine() as engine:
        run = await engine.start(streaming.chat, "What do runs do?")
        page = streaming.Page()
        for lost_at in (2, 5, None):
            await page.read(run, lost_at=lost_at)

        assert "".join(page.words) == await run.result()
        assert page.position == 3 + len(streaming.WORDS)
        assert ["thinking", "done"] == [status async for status in run.stream("status")]
