"""The ticks of cron expressions against a second implementation: a sample of what `make cron` does."""

import pytest

from proof.cron.compare import compare_zone, year
from proof.cron.expressions import USUAL, expressions
from proof.cron.oracle import Expression

SAMPLE = [
    "0 */6 * * *", "* 2 * * *", "*/30 23,0,1 * * *", "30 2 * * *", "30 1 * * *", "0-59/10 0-3 * * *", "30 2 * 3 SUN",
    "0 0 L * *", "51 3-3/5 18-27 * *", "0 0 1-7 * MON",
]  # fmt: skip


@pytest.mark.parametrize(
    ("zone", "first"),
    [
        ("America/New_York", 2026),
        ("Australia/Lord_Howe", 2026),  # Half an hour.
        ("Pacific/Apia", 2011),  # A day that was left out.
        ("Asia/Beirut", 2026),  # At midnight.
    ],
)
def test_ticks_are_those_of_the_second_implementation(zone: str, first: int) -> None:
    """Around every change of the clocks of a year."""
    ranges, differences = compare_zone(zone, SAMPLE, year(first), year(first + 1), seed=0)

    assert [] == differences
    assert ranges >= 3


def test_the_second_implementation_reads_expressions_by_itself() -> None:
    """The second implementation reads expressions by itself, and there are 400 different ones to compare."""
    assert 400 == len(set(expressions(400, seed=0)))
    assert set(USUAL) <= set(expressions(400, seed=0))
    every_fifth = Expression("*/5 1-3 * * MON-FRI")
    assert (set(range(0, 60, 5)), {1, 2, 3}) == (every_fifth.minutes, every_fifth.hours)
