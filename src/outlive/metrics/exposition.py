"""The metrics of an engine as text: the exposition format of Prometheus, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate

from outlive.engine import Engine
from outlive.metrics.figures import figures_of
from outlive.metrics.table import METRICS, Labels, Metric, Reading
from outlive.telemetry import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
AGE_SECONDS_MAX = 2.0


async def exposition(engine: Engine, *, age_seconds_max: float = AGE_SECONDS_MAX) -> bytes:
    """All metrics of an engine; `CONTENT_TYPE` says what they are.

    It never raises because of the store: if that does not answer within a few seconds, `outlive_store_up` is 0 and what
    is read from it is missing.

    Args:
        age_seconds_max: how old the figures may be that are read from the store.
    """
    store = await figures_of(engine, age_seconds_max=age_seconds_max)
    reading = Reading(engine, engine._parts.sessions, store)
    return "".join(f"{line}\n" for metric in METRICS for line in _lines(metric, reading)).encode()


def _lines(metric: Metric, reading: Reading) -> Iterator[str]:
    yield f"# HELP {metric.name} {_escaped(metric.help)}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for values, value in metric.read(reading):
        if isinstance(value, Histogram):
            yield from _histogram(metric, values, value)
        else:
            yield f"{metric.name}{_labels(metric.labels, values)} {_number(value)}"


def _histogram(metric: Metric, values: Labels, histogram: Histogram) -> Iterator[str]:
    counts = list(accumulate(histogram.counts))
    bounds = [bound / histogram.scale for bound in histogram.bounds]
    for bound, count in zip([*bounds, math.inf], counts, strict=True):
        labels = _labels((*metric.labels, "le"), (*values, _number(bound)))
        yield f"{metric.name}_bucket{labels} {count}"
    labels = _labels(metric.labels, values)
    yield f"{metric.name}_sum{labels} {_number(histogram.sum / histogram.scale)}"
    yield f"{metric.name}_count{labels} {counts[-1]}"


def _labels(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    pairs = ",".join(f'{name}="{_escaped(value, quotes=True)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}"


def _escaped(text: str, *, quotes: bool = False) -> str:
    escaped = text.replace("\\", r"\\").replace("\n", r"\n")
    return escaped.replace('"', r"\"") if quotes else escaped


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
