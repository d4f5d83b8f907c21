"""Spans of OpenTelemetry for starts, runs and attempts. Imported only if a program traces: the API may not be there.

Every tree of runs is in one trace. If it has a `traceparent` among its headers, that is the trace of the caller that
started it. Else the id of the trace is made from the nonce of the tree. The id of a run's span is made from the nonce
and the id of the run. So all processes agree on these ids, and none has to send them to another.

A tree that another tree has brought about (a detached run, a fork, the next generation) has a trace of its own, with a
link to the run that it comes from: the header `tracelink`, in the form of a `traceparent`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    ProxyTracerProvider,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    TracerProvider,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from outlive._kernel.define.in_step import StepContext
from outlive._kernel.journal.failure import class_name
from outlive._kernel.model import Run
from outlive._kernel.model.run import FAILED
from outlive.telemetry import log

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
TRACELINK = "tracelink"
NANOSECONDS = 1_000
"""In a microsecond."""

_WIRE = TraceContextTextMapPropagator()
_IDS: ContextVar[tuple[int, int] | None] = ContextVar("outlive_ids", default=None)
"""The ids of the trace and of the span that is about to be made, if they are known already."""


class GivenIds:
    """Makes ids for the spans of one tracer: ids that are known already, and others as its provider makes them."""

    def __init__(self, other: Any) -> None:
        self._other = other

    def generate_trace_id(self) -> int:
        """See the `IdGenerator` of OpenTelemetry."""
        ids = _IDS.get()
        made: int = self._other.generate_trace_id() if ids is None else ids[0]
        return made

    def generate_span_id(self) -> int:
        """See the `IdGenerator` of OpenTelemetry."""
        ids = _IDS.get()
        made: int = self._other.generate_span_id() if ids is None else ids[1]
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._other, name)


def find(provider: TracerProvider | None) -> Spans | None:
    """The maker of spans; None as long as the program has set no provider."""
    found = provider or trace.get_tracer_provider()
    if isinstance(found, ProxyTracerProvider):
        return None
    tracer: Any = found.get_tracer("outlive")
    if not hasattr(tracer, "id_generator"):
        return None  # It is switched off; or it is not the SDK, and no process could know the ids of another.
    if not isinstance(tracer.id_generator, GivenIds):
        tracer.id_generator = GivenIds(tracer.id_generator)
    return Spans(tracer)


class Spans:
    """Makes the spans of one provider."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @staticmethod
    @contextmanager
    def guarded() -> Iterator[None]:
        """Log what an exporter or a sampler of the program raises: no run and no step fails for it."""
        try:
            yield
        except Exception:
            log.exception("a span could not be made or exported")

    # -- Starts ----------------------------------------------------------------------------------------------

    def is_traced(self, headers: Mapping[str, str]) -> bool:
        """Whether headers say already in which trace a run is."""
        return TRACEPARENT in headers

    @contextmanager
    def start(self, workflow: str, run_id: str) -> Iterator[dict[str, str]]:
        """A span around a start, and the headers that let the run go on with its trace."""
        attributes = {"outlive.run.id": run_id, "outlive.workflow": workflow}
        span = self._tracer.start_span(f"start {workflow}", kind=SpanKind.PRODUCER, attributes=attributes)
        headers: dict[str, str] = {}
        _WIRE.inject(headers, context=set_span_in_context(span))
        with _around(span):
            yield headers

    # -- Steps -----------------------------------------------------------------------------------------------

    @contextmanager
    def attempt(self, step: StepContext) -> Iterator[None]:
        """A span around an attempt of a step."""
        nonce = step.idempotency_key.rpartition(":")[2]
        run = self._of_run(step.headers, nonce, step.run_id, step.workflow)
        span = self._tracer.start_span(
            step.name,
            context=set_span_in_context(NonRecordingSpan(run), otel_context.Context()),
            attributes={
                "outlive.run.id": step.run_id,
                "outlive.workflow": step.workflow,
                "outlive.step": step.name,
                "outlive.attempt": step.attempt,
                "outlive.epoch": step.epoch,
            },
        )
        with _around(span):
            yield

    # -- Runs ------------------------------------------------------------------------------------------------

    def ended(self, run: Run, headers: dict[str, str], *, retried: int) -> None:
        """Make the span of a run that has ended, from its creation to its end."""
        own = self._of_run(headers, _nonce(run), run.id, run.workflow)
        if run.number and run.parent_id is not None:
            parent: SpanContext | None = self._of_run(headers, _nonce(run), run.parent_id, run.workflow)
        else:
            parent = _read(headers, TRACEPARENT)
        span_id = own.span_id
        if retried and not run.number:
            # It has ended before, and has a span of that time: attempts are below that one, and so is this span.
            parent, span_id = own, _hashed(f"{_nonce(run)}/{run.id}/{retried}", 8)
        attributes = _about(run) | {"outlive.status": run.status.value}
        if run.failure is not None:
            attributes["error.type"] = run.failure.error
        span = self._make(
            run.workflow,
            ids=(own.trace_id, span_id),
            parent=parent,
            at=run.created_at,
            links=[] if run.number or (link := _read(headers, TRACELINK)) is None else [Link(link)],
            attributes=attributes,
        )
        if run.status in FAILED:
            span.set_status(StatusCode.ERROR, run.failure.error if run.failure is not None else run.status.value)
        span.end(max(run.finished_at or run.updated_at, run.created_at) * NANOSECONDS)

    def taken_over(self, run: Run, headers: dict[str, str], *, worker: str) -> None:
        """Make a span without a length where a worker has taken a run over from a lost one."""
        own, at = self._of_run(headers, _nonce(run), run.id, run.workflow), run.updated_at
        attributes = _about(run) | {"outlive.worker": worker, "outlive.epoch": run.epoch}
        ids = own.trace_id, _hashed(f"{_nonce(run)}/{run.id}/epoch {run.epoch}", 8)
        self._make("taken over", ids=ids, parent=own, at=at, attributes=attributes).end(at * NANOSECONDS)

    def linked(self, headers: dict[str, str], run: Run) -> dict[str, str]:
        """The headers of a tree that this run brings about."""
        own = self._of_run(headers, _nonce(run), run.id, run.workflow)
        kept = {name: value for name, value in headers.items() if name not in (TRACEPARENT, TRACESTATE, TRACELINK)}
        return kept | {TRACELINK: f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"}

    def _make(
        self,
        name: str,
        *,
        ids: tuple[int, int],
        parent: SpanContext | None,
        at: int,
        attributes: dict[str, Any],
        links: Sequence[Link] = (),
    ) -> Span:
        context = otel_context.Context()
        if parent is not None:
            context = set_span_in_context(NonRecordingSpan(parent), context)
        token = _IDS.set(ids)
        try:
            return self._tracer.start_span(
                name, context=context, start_time=at * NANOSECONDS, attributes=attributes, links=links
            )
        finally:
            _IDS.reset(token)

    def _of_run(self, headers: Mapping[str, str], nonce: str, run_id: str, workflow: str) -> SpanContext:
        """The context of the span of a run, whether that exists by now or not."""
        caller, span_id = _read(headers, TRACEPARENT), _hashed(f"{nonce}/{run_id}", 8)
        if caller is not None:
            return SpanContext(caller.trace_id, span_id, True, caller.trace_flags, caller.trace_state)
        trace_id = _hashed(nonce, 16)
        return SpanContext(trace_id, span_id, True, self._flags(trace_id, workflow))

    def _flags(self, trace_id: int, workflow: str) -> TraceFlags:
        """Whether a trace that begins with a run is sampled. Samplers decide that by its id, so all processes agree."""
        sampler = getattr(self._tracer, "sampler", None)
        if sampler is None:
            return TraceFlags(TraceFlags.SAMPLED)
        decision = sampler.should_sample(otel_context.Context(), trace_id, workflow).decision
        return TraceFlags(TraceFlags.SAMPLED if decision.is_sampled() else TraceFlags.DEFAULT)


@contextmanager
def _around(span: Span) -> Iterator[None]:
    """Make a span current, and end it with what it is around."""
    token = otel_context.attach(set_span_in_context(span))
    try:
        yield
    except asyncio.CancelledError:
        span.set_attribute("outlive.cancelled", True)
        raise
    except BaseException as error:
        # Only its type: its message may hold what is not to be seen, and the log knows what to hide.
        kind = class_name(type(error))
        span.set_attribute("error.type", kind)
        span.set_status(StatusCode.ERROR, kind)
        raise
    finally:
        otel_context.detach(token)
        with Spans.guarded():
            span.end()


def _about(run: Run) -> dict[str, Any]:
    return {"outlive.run.id": run.id, "outlive.workflow": run.workflow, "outlive.version": run.version}


def _nonce(run: Run) -> str:
    """The nonce as the idempotency keys of its steps have it."""
    return f"{run.nonce:016x}"


def _read(headers: Mapping[str, str], name: str) -> SpanContext | None:
    """The span in a header, if it is valid."""
    if name not in headers:
        return None
    carrier = {TRACEPARENT: headers[name], TRACESTATE: headers.get(TRACESTATE, "") if name == TRACEPARENT else ""}
    found = trace.get_current_span(_WIRE.extract(carrier, otel_context.Context())).get_span_context()
    return found if found.is_valid else None


def _hashed(text: str, size: int) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest()) or 1
