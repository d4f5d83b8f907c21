"""A run that is killed on one worker and finished on another is one trace, as a real SDK exports it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import outlive
from tests.cli.conftest import Command, command, environment
from tests.tracing import traced

__all__ = ["command"]

resize = outlive.remote_step("traced.resize", input=int, output=int, queue="gpu")
SERVE = "import tests.tracing.traced; from outlive.cli import main; main()"
"""A command whose program has set up tracing before, as `opentelemetry-instrument` does it."""


@outlive.workflow(name="traced.publish")
async def publish(width: int) -> int:
    """One step that a program elsewhere makes."""
    return await resize(width)


async def test_a_run_that_is_killed_on_one_worker_and_ends_on_another_is_one_trace(
    tmp_path: Path, command: Callable[..., Command]
) -> None:
    """Three processes export spans: the caller and two workers. Every span has its parent in the trace, and what the
    first worker has done is not traced again. [FE-O7]"""
    url, exporter, provider = f"sqlite:{tmp_path / 'traced.db'}", InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    worker = ("worker", str(Path(traced.__file__)), "--store", url, "--tracing")
    async with outlive.Engine(url, worker=False, middleware=[outlive.middleware.Tracing(provider)]) as client:
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


async def test_a_server_traces_what_remote_workers_report_to_it(tmp_path: Path) -> None:
    """They have no engine, and it records the ends of their attempts."""
    url, exporter, provider = f"sqlite:{tmp_path / 'traced.db'}", InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    serve = [sys.executable, "-c", SERVE, "serve", "--store", url, "--port", "0", "--tracing"]
    async with outlive.Engine(url, middleware=[outlive.middleware.Tracing(provider)]) as engine:
        with subprocess.Popen(serve, stdout=subprocess.PIPE, env=environment(tmp_path), cwd=tmp_path, text=True) as own:
            try:
                assert own.stdout is not None
                address = own.stdout.readline().split()[1].removesuffix("/api/v1")
                run = await engine.start(publish, 80, id="publish-1")
                async with outlive.connect(address) as remote:
                    task = await remote.tasks.claim("gpu", ["traced.resize"], worker="gpu-1", wait=10)
                    assert task is not None
                    await remote.tasks.complete(task.id, task.lease, 80)
                assert await run.result(timeout=20) == 80
            finally:
                own.send_signal(signal.SIGTERM)
                assert own.wait(20) == 0

    (attempt,) = [json.loads(line) for line in (tmp_path / f"spans-{own.pid}").read_text().splitlines()]
    (caller,) = [json.loads(span.to_json()) for span in exporter.get_finished_spans() if span.name == "traced.publish"]
    assert attempt["name"] == "outlive.remote.traced.resize"
    assert [link["context"]["span_id"] for link in attempt["links"]] == [caller["context"]["span_id"]]
