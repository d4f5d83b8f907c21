"""A run that is killed on one worker and finished on another is one trace, as a real SDK exports it."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import outlive
from tests.cli.conftest import Command, command
from tests.tracing import traced

__all__ = ["command"]


async def test_a_run_that_is_killed_on_one_worker_and_ends_on_another_is_one_trace(
    tmp_path: Path, command: Callable[..., Command]
) -> None:
    """Three processes export spans: the caller and two workers. Every span has its parent in the trace, and what the
    first worker has done is not traced again."""
    url, exporter, provider = f"sqlite:{tmp_path / 'traced.db'}", InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    worker = ("worker", str(Path(traced.__file__)), "--store", url, "--tracing")
    async with outlive.Engine(url, worker=False, middleware=[outlive.Tracing(provider)]) as client:
        with provider.get_tracer("web").start_as_current_span("POST /orders"):
            run = await client.start(traced.buy, "lamp", id="order-1")
        first = command(*worker)
        assert first.ends() == -signal.SIGKILL
        second = command(*worker)
        assert await run.result(timeout=20) == "reserved lamp, charged lamp"
        second.signal(signal.SIGTERM)
        assert second.ends() == 0

    spans = [json.loads(span.to_json()) for span in exporter.get_finished_spans()]
    by_worker = {
        process: [json.loads(line) for line in (tmp_path / f"spans-{process}").read_text().splitlines()]
        for process in (first.process.pid, second.process.pid)
    }
    assert [span["name"] for span in by_worker[first.process.pid]] == ["traced.reserve"]
    spans += [span for found in by_worker.values() for span in found]
    assert len({span["context"]["trace_id"] for span in spans}) == 1
    assert Counter(span["name"] for span in spans) == Counter(
        [
            "POST /orders",
            "start traced.order",
            "traced.order",
            "traced.reserve",
            "taken over",
            "traced.pay",
            "traced.charge",
            "POST /charges",
        ]
    )
    names = {span["context"]["span_id"]: span["name"] for span in spans}
    assert len(names) == len(spans)
    parents = {span["name"]: names[span["parent_id"]] if span["parent_id"] else None for span in spans}
    assert parents == {
        "POST /orders": None,
        "start traced.order": "POST /orders",
        "traced.order": "start traced.order",
        "traced.reserve": "traced.order",
        "taken over": "traced.order",
        "traced.pay": "traced.order",
        "traced.charge": "traced.pay",
        "POST /charges": "traced.charge",
    }
