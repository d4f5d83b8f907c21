"""`examples/patterns/polling.py`: each way to poll, with the time that it takes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from outlive.testing import TestEngine

EXAMPLE = Path(__file__).parents[2] / "examples" / "patterns" / "polling.py"


@pytest.fixture(scope="module")
def polling() -> Any:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("patterns_polling", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("workflow", "job", "minutes"), [("poll", "scan", 0), ("poll", "report", 3), ("poll_in_rounds", "audit", 180)]
)
async def test_polling(polling: Any, workflow: str, job: str, minutes: int) -> None:
    """The fourth call has the answer."""
    async with TestEngine() as engine:
        begun = engine.now()
        run = await engine.start(getattr(polling, workflow), job)
        assert f"{job} is done after 4 calls" == await run.result()
        assert minutes == round((engine.now() - begun).total_seconds() / 60)
