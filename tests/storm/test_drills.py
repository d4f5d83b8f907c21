"""Drills measure what they say, on a fleet that is small enough for a test. What they find is not judged here."""

import pytest

from proof.storm.drills.failover import failover
from proof.storm.drills.measure import percentile, spread


@pytest.mark.timeout(120)
def test_all_runs_of_a_lost_worker_are_found_elsewhere() -> None:
    """A worker that is asked to stop releases its runs, and the drill sees each of them go on."""
    answer = list(failover(runs=5, workers=2, lease_seconds=2.0, how="term"))

    assert "2 workers with 5 runs each, lease 2 s; one is lost: term" == answer[0]
    assert "5 of 5" in answer[1]
    assert "p99" in answer[2]


def test_percentiles_are_values_that_occurred() -> None:
    """The smallest one that so many do not exceed."""
    values = [float(number) for number in range(100, 0, -1)]

    assert 50.0 == percentile(values, 0.5)
    assert 99.0 == percentile(values, 0.99)
    assert 7.0 == percentile([7.0], 0.99)
    assert "p50 2.000 s, p99 3.000 s, max 3.000 s" == spread([3.0, 1.0, 2.0])
    assert "nothing to measure" == spread([])
