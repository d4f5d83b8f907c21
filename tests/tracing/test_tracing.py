"""Spans of starts, runs and attempts: which there are, what they hang on, and what never comes into one."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode

import outlive
from outlive._kernel.define.middleware import NO_HOOKS, hooks_of
from outlive._kernel.model import Run, RunStatus
from outlive.cli.worker import worker
from outlive.errors import RunCancelledError
from outlive.integrations.logging import JsonFormatter
from outlive.testing import TestEngine
from tests.engine.inside import journal_of

REQUEST = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = REQUEST.removesuffix("01") + "00"


class Traces:
    """A provider as a program sets it, and what it has exported."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """In the order in which they ended."""
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        """All spans of this name."""
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        """The only span of this name."""
        (span,) = self.named(name)
        return span

    def engine(self, **options: Any) -> TestEngine:
        """An engine that traces."""
        return TestEngine(middleware=[outlive.middleware.Tracing(self.provider)], **options)


def trace_of(span: ReadableSpan) -> int:
    """The id of its trace."""
    assert span.context is not None
    trace_id: int = span.context.trace_id
    return trace_id


def hangs_on(span: ReadableSpan, parent: ReadableSpan) -> bool:
    """Whether a span is the child of another one."""
    assert span.parent is not None
    assert parent.context is not None
    return (span.parent.trace_id, span.parent.span_id) == (parent.context.trace_id, parent.context.span_id)


def links_to(span: ReadableSpan, other: ReadableSpan) -> bool:
    """Whether a span has one link, to another one."""
    assert other.context is not None
    return [link.context.span_id for link in span.links] == [other.context.span_id]


@outlive.step(name="tracing.work", retry=outlive.Retry(attempts=2, first=0))
async def work(failures: int) -> int:
    """Fails so often, with what must not be seen."""
    if outlive.current_step().attempt <= failures:
        raise ValueError("the password is hunter22")
    return failures


@outlive.step(name="tracing.log")
def say() -> None:
    """On a thread."""
    outlive.get_logger("tests.tracing").warning("here")


@outlive.workflow(name="tracing.child")
async def child(failures: int) -> int:
    """One step."""
    return await work(failures)


@outlive.workflow(name="tracing.root")
async def root(failures: int) -> int:
    """A step, and a child."""
    await work(0)
    return await child(failures)


@outlive.workflow(name="tracing.starter")
async def starter() -> int:
    """Starts a tree of its own."""
    return await (await outlive.start(child, 0, detached=True)).result()


@outlive.workflow(name="tracing.loop")
async def loop(left: int) -> int:
    """Goes on as the next generation."""
    await work(0)
    if left:
        await outlive.continue_as_new(left - 1)
    return left


@outlive.workflow(name="tracing.talks")
async def talks() -> None:
    """Logs in a step."""
    await say()


async def test_a_tree_is_one_trace_below_the_span_of_its_caller() -> None:
    """Start, runs and attempts hang on each other as they called each other."""
    traces = Traces()
    async with traces.engine() as engine:
        with traces.provider.get_tracer("web").start_as_current_span("POST /orders"):
            run = await engine.start(root, 1, id="a")
        assert await run.result() == 1

    start, run_span, below = traces.one("start tracing.root"), traces.one("tracing.root"), traces.one("tracing.child")
    direct, failed, again = traces.named("tracing.work")
    assert len({trace_of(span) for span in traces.spans}) == 1
    assert hangs_on(start, traces.one("POST /orders"))
    assert hangs_on(run_span, start)
    assert hangs_on(direct, run_span)
    assert hangs_on(below, run_span)
    assert hangs_on(failed, below)
    assert hangs_on(again, below)
    assert start.kind is SpanKind.PRODUCER
    assert [span.attributes and span.attributes["outlive.attempt"] for span in (failed, again)] == [1, 2]
    assert run_span.attributes == {
        "outlive.run.id": "a",
        "outlive.workflow": "tracing.root",
        "outlive.version": 1,
        "outlive.status": "succeeded",
    }


async def test_a_tree_without_a_caller_that_traces_is_one_trace_too() -> None:
    """All processes make the same ids from its nonce; the run has no parent."""
    traces = Traces()
    async with traces.engine() as engine:
        await (await engine.start("tracing.root", [0])).result()

    assert len({trace_of(span) for span in traces.spans}) == 1
    assert traces.one("tracing.root").parent is None
    assert hangs_on(traces.named("tracing.work")[0], traces.one("tracing.root"))


async def test_a_caller_may_name_the_trace_of_its_run() -> None:
    """A `traceparent` header, as a gateway without an SDK sends it, is the parent of the run."""
    traces = Traces()
    async with traces.engine() as engine:
        await (await engine.start(child, 0, headers={"traceparent": REQUEST})).result()

    parent = traces.one("tracing.child").parent
    assert parent is not None
    assert f"00-{parent.trace_id:032x}-{parent.span_id:016x}-01" == REQUEST
    assert [span.name for span in traces.spans] == ["tracing.work", "tracing.child"]


@pytest.mark.parametrize("header", ["", "00-0-0-01", "what is this", UNSAMPLED[:-1]])
async def test_an_invalid_traceparent_is_ignored(header: str) -> None:
    """A run with an invalid `traceparent` header has a trace of its own."""
    traces = Traces()
    async with traces.engine() as engine:
        await (await engine.start(child, 0, headers={"traceparent": header})).result()

    assert traces.one("tracing.child").parent is None
    assert hangs_on(traces.one("tracing.work"), traces.one("tracing.child"))


async def test_a_detached_run_has_a_trace_of_its_own_with_a_link() -> None:
    """The header that says so is journaled with it."""
    traces = Traces()
    async with traces.engine() as engine:
        await (await engine.start(starter, headers={"tenant": "a", "traceparent": REQUEST})).result()

    detached, by = traces.one("tracing.child"), traces.one("tracing.starter")
    assert trace_of(detached) != trace_of(by)
    assert links_to(detached, by)
    assert detached.parent is None
    assert trace_of(traces.one("tracing.work")) == trace_of(detached)


async def test_every_generation_has_a_trace_of_its_own_with_a_link_to_the_one_before() -> None:
    """A run that goes on for ever does not make a trace without end."""
    traces = Traces()
    async with traces.engine() as engine:
        await (await engine.start(loop, 2, id="a")).result()

    first, second, third = traces.named("tracing.loop")
    assert len({trace_of(span) for span in (first, second, third)}) == 3
    assert links_to(second, first)
    assert links_to(third, second)
    assert first.attributes is not None
    assert first.attributes["outlive.status"] == "continued"


async def test_a_fork_has_a_trace_of_its_own_with_a_link_to_its_origin() -> None:
    """A fork has a trace of its own with a link to its origin, and does not trace again what it has copied."""
    traces = Traces()
    async with traces.engine() as engine:
        await (await engine.start(root, 0, id="a")).result()
        await (await engine.fork("a", at="tracing.child", id="b")).result()

    origin, fork = traces.named("tracing.root")
    assert links_to(fork, origin)
    assert trace_of(fork) != trace_of(origin)
    assert len(traces.named("tracing.work")) == 3


async def test_a_run_that_is_retried_has_a_second_span_below_its_first() -> None:
    """No two spans have one id."""
    traces = Traces()
    async with traces.engine() as engine:
        run = await engine.start(child, 2, id="a")
        with pytest.raises(outlive.errors.RunFailedError):
            await run.result()
        await engine.retry("a")
        with pytest.raises(outlive.errors.RunFailedError):
            await run.result()

    first, second = traces.named("tracing.child")
    assert hangs_on(second, first)
    assert all(span.context.span_id < 2**64 for span in traces.spans if span.context), "an id has eight bytes"
    assert len({span.context.span_id for span in traces.spans if span.context}) == len(traces.spans)


async def test_a_run_that_is_cancelled_before_it_began_has_its_span() -> None:
    """The client that has ended it makes it."""
    traces = Traces()
    async with traces.engine(worker=False) as engine:
        await engine.start(child, 0, id="a")
        await engine.cancel("a")

    run = traces.one("tracing.child")
    assert hangs_on(run, traces.one("start tracing.child"))
    assert run.attributes is not None
    assert run.attributes["outlive.status"] == "cancelled"
    assert run.status.status_code is StatusCode.UNSET


async def test_spans_say_what_kind_of_error_it_was_and_nothing_of_what_it_said() -> None:
    """Values of users do not leave by this door. [S30 S36]"""
    traces = Traces()
    async with traces.engine() as engine:
        with pytest.raises(outlive.errors.RunFailedError):
            await (await engine.start(root, 2)).result()

    for name in ("tracing.child", "tracing.root"):
        assert traces.one(name).status.status_code is StatusCode.ERROR
        assert traces.one(name).status.description == "ValueError"
    assert [span.status.description for span in traces.named("tracing.work")[1:]] == ["ValueError"] * 2
    assert not [span for span in traces.spans if "hunter22" in span.to_json()]


async def test_a_run_that_its_caller_does_not_sample_is_not_exported() -> None:
    """A run whose caller does not sample exports no span, because the decision travels with the run."""
    traces = Traces(ParentBased(ALWAYS_ON))
    async with traces.engine() as engine:
        await (await engine.start(root, 0, headers={"traceparent": UNSAMPLED})).result()

    assert traces.spans == ()


async def test_a_sampler_decides_for_a_whole_tree() -> None:
    """A sampler decides for a run and its steps alike, even where no caller has decided."""
    traces = Traces(ParentBased(TraceIdRatioBased(0.5)))
    async with traces.engine() as engine:
        for _ in range(12):
            await (await engine.start("tracing.child", [0])).result()

    runs = traces.named("tracing.child")
    assert 0 < len(runs) < 12
    assert {trace_of(span) for span in runs} == {trace_of(span) for span in traces.named("tracing.work")}


async def test_a_log_line_of_a_traced_step_names_its_span() -> None:
    """On a thread too."""
    traces, stream = Traces(), StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logging.getLogger("tests.tracing").addHandler(handler)
    try:
        async with traces.engine() as engine:
            await (await engine.start(talks)).result()
    finally:
        logging.getLogger("tests.tracing").removeHandler(handler)

    line, span = json.loads(stream.getvalue()), traces.one("tracing.log")
    assert span.context is not None
    assert (line["trace_id"], line["span_id"]) == (f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}")


class Broken(SpanProcessor):
    """An exporter of a program that raises."""

    def on_end(self, span: ReadableSpan) -> None:
        raise ConnectionError("the collector is away")


async def test_an_exporter_that_raises_harms_no_run(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged."""
    provider = TracerProvider()
    provider.add_span_processor(Broken())
    async with TestEngine(middleware=[outlive.middleware.Tracing(provider)]) as engine:
        assert await (await engine.start(root, 1)).result() == 1

    assert "a span could not be made or exported" in caplog.text


async def test_until_the_program_has_set_a_provider_nothing_is_traced() -> None:
    """No header either."""
    async with TestEngine(middleware=[outlive.middleware.Tracing()]) as engine:
        run = await engine.start(starter)
        await run.result()
        history = await journal_of(engine, run.id)

    assert getattr(history[0], "headers", None) == {}


def test_tracing_without_opentelemetry_has_no_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with Tracing runs without hooks where OpenTelemetry is not installed."""
    monkeypatch.delattr("outlive._kernel.define.spans", raising=False)
    monkeypatch.setitem(sys.modules, "outlive._kernel.define.spans", None)

    assert hooks_of([outlive.middleware.Tracing()]) == NO_HOOKS


@pytest.mark.parametrize("missing", ["outlive._kernel.define.spans", "opentelemetry.sdk"], ids=["all", "the SDK"])
def test_a_command_line_that_wants_traces_says_what_is_missing(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything runs. The API, which `outlive[otel]` installs, makes no spans."""
    monkeypatch.delattr("outlive._kernel.define.spans", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    done = CliRunner().invoke(worker, ["--store", "memory:", "--tracing"])

    assert (done.exit_code, "opentelemetry-sdk" in done.output) == (2, True)


def test_a_run_that_was_taken_over_has_a_mark_in_its_span() -> None:
    """A span without a length below that of the run, with the worker that goes on."""
    traces = Traces()
    tracing = outlive.middleware.Tracing(traces.provider)
    row = Run(id="o", root_id="o", workflow="order", version=1, nonce=7, epoch=3, created_at=5, updated_at=9)

    tracing.taken_over(row, {"traceparent": REQUEST}, worker="w2")
    tracing.ended(replace(row, status=RunStatus.SUCCEEDED, finished_at=12), {"traceparent": REQUEST})

    mark = traces.one("taken over")
    assert hangs_on(mark, traces.one("order"))
    assert (mark.start_time, mark.end_time) == (9_000, 9_000)
    assert mark.attributes is not None
    assert (mark.attributes["outlive.worker"], mark.attributes["outlive.epoch"]) == ("w2", 3)
    assert mark.context is not None
    assert 0 < mark.context.span_id < 2**64


BEGAN: list[asyncio.Event] = []
"""Set when the step of one test has begun."""


@outlive.step(name="tracing.hang")
async def hang() -> None:
    """Ends when it is cancelled."""
    BEGAN[0].set()
    await asyncio.get_running_loop().create_future()


@outlive.workflow(name="tracing.hanging")
async def hanging() -> None:
    """One step, which hangs."""
    await hang()


async def test_an_attempt_that_is_cancelled_says_so_and_has_no_error() -> None:
    """A cancellation is not a failure."""
    traces = Traces()
    BEGAN[:] = [asyncio.Event()]
    async with traces.engine() as engine:
        run = await engine.start(hanging)
        async with asyncio.timeout(30):
            await BEGAN[0].wait()
        await run.cancel()
        with pytest.raises(RunCancelledError):
            await run.result()

    attempt = traces.one("tracing.hang")
    assert attempt.attributes is not None
    assert attempt.attributes["outlive.cancelled"] is True
    assert "error.type" not in attempt.attributes
    assert attempt.status.status_code is StatusCode.UNSET
