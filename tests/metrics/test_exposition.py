"""What Prometheus reads of an engine: its own parser understands it, and the figures are those of the engine."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import outlive
from outlive import metrics
from outlive.metrics.table import COUNTERS, METRICS
from outlive.telemetry import OTHER, SERIES_MAX, Counters, Histogram, Series
from outlive.testing import TestEngine
from tests.docs.page import DOCS, expect_same, first_cells, section_of
from tests.engine.faults import FaultyStore
from tests.engine.inside import wrap_inner

Samples = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]
GUIDE = DOCS / "guides" / "metrics.md"
MAILS = outlive.Queue("metrics.mails", concurrency=1)


@outlive.step(name="metrics.send", retry=outlive.Retry(attempts=2, first=0))
async def send(failures: int) -> str:
    """Fails so often."""
    await asyncio.sleep(0)
    if outlive.current_step().attempt <= failures:
        raise ConnectionError("refused")
    return "sent"


@outlive.workflow(name="metrics.mail")
async def mail(failures: int) -> str:
    """One step."""
    return await send(failures)


@outlive.workflow(name="metrics.broken")
async def broken() -> None:
    """Fails."""
    raise ValueError("planned")


@outlive.workflow(name="metrics.stuck", queue=MAILS)
async def stuck() -> None:
    """Keeps its slot."""
    await outlive.wait_for_signal("never")


@outlive.workflow(name="metrics.asks")
async def asks() -> None:
    """Waits for a person."""
    await outlive.wait_for_approval("metrics.ok")


async def samples_of(engine: outlive.Engine) -> Samples:
    """What the parser of Prometheus makes of the metrics."""
    text = (await metrics.exposition(engine, age_seconds_max=-1)).decode()
    found = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in found}


def value(samples: Samples, name: str, **labels: str) -> float:
    """One sample."""
    return samples[name, tuple(sorted(labels.items()))]


async def test_the_figures_are_those_of_the_engine() -> None:
    """Counters one by one; steps and runs by their names and how they ended. [FE-O6]"""
    async with TestEngine() as engine:
        await (await engine.start(mail, 1)).result()
        with pytest.raises(outlive.errors.RunFailedError):
            await (await engine.start(broken)).result()
        samples = await samples_of(engine)
        counters = engine.counters

    for field in dataclasses.fields(Counters):
        if field.name not in ("measures", "commits", "runs_claimed", "rows", "bytes", "runs_replayed"):
            assert value(samples, f"outlive_{field.name}_total") == getattr(counters, field.name), field.name
    step = {"step": "metrics.send"}
    assert value(samples, "outlive_step_seconds_count", outcome="failed", **step) == 1
    assert value(samples, "outlive_step_seconds_bucket", outcome="succeeded", le="+Inf", **step) == 1
    assert value(samples, "outlive_run_seconds_count", workflow="metrics.mail", status="succeeded") == 1
    assert value(samples, "outlive_run_seconds_count", workflow="metrics.broken", status="failed") == 1
    assert value(samples, "outlive_commit_changes_sum") >= value(samples, "outlive_commit_seconds_count") > 0
    assert value(samples, "outlive_store_up") == value(samples, "outlive_worker_up") == 1


@pytest.mark.any_store
@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_the_store_says_what_waits_and_for_how_long(store: str, tmp_path: Path) -> None:
    """Runs by status, the line of a queue and its age, approvals, workers."""
    async with TestEngine("memory:" if store == "memory" else f"sqlite:{tmp_path / 'metrics.db'}") as engine:
        for workflow in (stuck, stuck, asks):
            await engine.start(workflow)
        await engine.skip(seconds=90)
        samples = await samples_of(engine)

    assert value(samples, "outlive_runs", status="waiting") == 2
    assert value(samples, "outlive_runs", status="pending") == 1
    assert value(samples, "outlive_pending_oldest_seconds") == 0, "the run in line waits for a slot, not for a worker"
    queue = {"queue": "metrics.mails"}
    assert value(samples, "outlive_queue_depth", **queue) == value(samples, "outlive_queue_running", **queue) == 1
    assert value(samples, "outlive_queue_concurrency", **queue) == 1
    assert value(samples, "outlive_queue_oldest_seconds", **queue) >= 90
    assert value(samples, "outlive_approvals_open") == value(samples, "outlive_workers") == 1


async def test_a_run_that_no_worker_takes_grows_old() -> None:
    """The age of the oldest pending run grows while no worker takes it, also in an engine without a worker."""
    async with TestEngine(worker=False) as engine:
        await engine.start(mail, 0)
        await engine.skip(seconds=90)
        samples = await samples_of(engine)

    assert value(samples, "outlive_pending_oldest_seconds") == 90
    assert value(samples, "outlive_workers") == 0
    assert ("outlive_worker_up", ()) not in samples


@pytest.mark.any_store
@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_a_run_that_no_worker_takes_is_seen_behind_many_that_wait_for_something_else(
    store: str, tmp_path: Path
) -> None:
    """A long line in a queue, and runs that are to begin later, were created before it."""
    url = "memory:" if store == "memory" else f"sqlite:{tmp_path / 'metrics.db'}"
    async with TestEngine(url, worker=False) as engine:
        for _ in range(150):
            await engine.start(stuck)
            await engine.start(mail, 0, delay=3600)
        await engine.start(mail, 0)
        await engine.skip(seconds=90)
        samples = await samples_of(engine)

    assert value(samples, "outlive_pending_oldest_seconds") == 90


async def test_a_store_that_is_away_takes_only_its_own_figures_with_it() -> None:
    """A scrape must not fail at the very moment when people look at the figures."""
    engine = TestEngine()
    store = wrap_inner(engine, FaultyStore)
    async with engine:
        await (await engine.start(mail, 0)).result()
        store.is_down = True
        away = await samples_of(engine)
        store.is_down = False
        back = await samples_of(engine)
    after = await samples_of(engine)

    for samples in (away, after):
        assert value(samples, "outlive_store_up") == 0
        assert ("outlive_workers", ()) not in samples
        assert value(samples, "outlive_runs_ended_total") == 1
    assert value(back, "outlive_store_up") == 1


async def test_a_queue_that_goes_while_it_is_read_takes_nothing_with_it() -> None:
    """It was listed, and its last run has ended since."""

    class Late(FaultyStore):
        async def list_queues(self) -> list[str]:
            self.calls["listed"] += 1
            return ["metrics.gone"] if self.calls["listed"] == 1 else []

    engine = TestEngine()
    wrap_inner(engine, Late)
    async with engine:
        samples = await samples_of(engine)

    assert value(samples, "outlive_store_up") == 1
    assert value(samples, "outlive_workers") == 1


async def test_names_that_mean_something_in_the_format_are_escaped() -> None:
    """The parser reads back what was written. [S36]"""
    name = 'a "quoted"\\ name\nof two lines'
    async with TestEngine() as engine:
        engine.counters.measures.step_seconds[name, "failed"].add(1_500_000)
        samples = await samples_of(engine)

    assert value(samples, "outlive_step_seconds_sum", step=name, outcome="failed") == 1.5


def test_a_value_counts_for_the_first_bound_that_is_not_below_it() -> None:
    """A value counts for the first bound that is not below it, as Prometheus means `le`."""
    histogram = Histogram((1, 10))
    for each in (0, 1, 2, 10, 11):
        histogram.add(each)

    assert (histogram.counts, histogram.count, histogram.sum) == ([2, 2, 1], 5, 24)


def test_names_without_end_are_counted_together() -> None:
    """A program that makes up names of steps does not fill the memory of Prometheus. [S36]"""
    series = Series((1,))
    for number in range(SERIES_MAX + 10):
        series[f"step-{number}", "failed"].add(1)

    assert len(series) == SERIES_MAX + 1
    assert series[OTHER, "failed"].count == 10


def test_every_metric_is_in_the_guide() -> None:
    """The guide has a row for every metric that is not a counter of the engine."""
    sections = [section_of(GUIDE, heading) for heading in ("## Histograms", "## Gauges")]
    counters = {metric.name for metric in COUNTERS} | {"outlive_rows_damaged_total"}
    names = [metric.name for metric in METRICS if metric.name not in counters]

    expect_same([name for text in sections for name in first_cells(text)], names, where="docs/guides/metrics.md")
    assert len({metric.name for metric in METRICS}) == len(METRICS)
