"""Percentiles, and how they are printed."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values: Sequence[float]) -> str:
    """Median, p99 and the largest, in seconds."""
    if not values:
        return "nothing to measure"
    return f"p50 {percentile(values, 0.5):.3f} s, p99 {percentile(values, 0.99):.3f} s, max {max(values):.3f} s"
