"""Every plan that once found a bug: none of them finds anything any more.

To add one: `python -m proof.simulation --seed N --shrink > tests/simulation/museum/<name>.json`, and say in
`what` what was wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from proof.simulation import simulate
from proof.simulation.plan import from_json

MUSEUM = sorted((Path(__file__).parent / "museum").glob("*.json"))


@pytest.mark.parametrize("file", MUSEUM, ids=lambda file: file.stem)
def test_a_plan_that_once_failed_plays_without_a_violation(file: Path) -> None:
    """A plan of the museum says what it once found, and plays to its end without a violation."""
    plan = from_json(file.read_text("utf-8"))

    story = simulate(plan)

    assert plan.what
    assert [] == story.violations, "\n".join(story.trace)
