"""`outlive.middleware.Tracing`: middleware that traces starts, runs and attempts of steps with OpenTelemetry.

A run outlives the process that began it, and a span of OpenTelemetry does not. So the ids of the span of a run are
made from what is journaled (the headers and the nonce of its tree), and every process knows them: attempts are
children of the run's span long before that exists. The span itself is made when the end of the run is durable, by the
worker that has recorded it, and therefore once. What OpenTelemetry is asked is in `spans`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outlive._kernel.define.in_step import StepContext
from outlive._kernel.define.middleware import Next, RunTracer, StartCall
from outlive._kernel.model import Run

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from outlive._kernel.define.spans import Spans


class Tracing(RunTracer):
    """Traces with OpenTelemetry: `Engine(..., middleware=[outlive.middleware.Tracing()])`, in the programs that
    start runs and in the workers.

    Each tree of runs is in one trace, wherever its steps run and however often its workers are killed: a span for each
    run, and below it one for each attempt of a step. Spans hold names, ids and types of errors, and no values of yours.

    Args:
        provider: where spans go; the provider that the program has set (`trace.set_tracer_provider`) unless given.
            Until there is one, and if the package `opentelemetry-api` is not installed, nothing is traced.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._spans: Spans | None = None
        try:
            from outlive._kernel.define import spans
        except ImportError:
            self.is_off = True
        else:
            self._find = spans.find

    def _ready(self) -> Spans | None:
        """The maker of spans, once the program has set a provider."""
        if self._spans is None:
            self._spans = self._find(self._provider)
        return self._spans

    async def on_start(self, start: StartCall, call_next: Next) -> Any:
        """A span in the trace of the caller; the run goes on with it, unless it was given a `traceparent`."""
        spans = self._ready()
        if spans is None or spans.is_traced(start.headers):
            return await call_next()
        with spans.start(start.workflow, start.id) as headers:
            start.headers |= headers
            return await call_next()

    async def on_step(self, step: StepContext, call_next: Next) -> Any:
        """A span for the attempt, current in the step: what its libraries trace is below it."""
        spans = self._ready()
        if spans is None:
            return await call_next()
        with spans.attempt(step):
            return await call_next()

    def ended(self, run: Run, headers: dict[str, str], *, retried: int = 0) -> None:
        """See `RunTracer`."""
        if (spans := self._ready()) is not None:
            with spans.guarded():
                spans.ended(run, headers, retried=retried)

    def taken_over(self, run: Run, headers: dict[str, str], *, worker: str) -> None:
        """See `RunTracer`."""
        if (spans := self._ready()) is not None:
            with spans.guarded():
                spans.taken_over(run, headers, worker=worker)

    def pass_on(self, headers: dict[str, str], run: Run) -> dict[str, str]:
        """See `RunTracer`."""
        if (spans := self._ready()) is not None:
            with spans.guarded():
                return spans.linked(headers, run)
        return headers
