"""The effects for others when runs have ended, or are parked, and that is durable: callers that wait, and figures.

A worker comes here once for each such run, when its change is committed: a replay and a refused change do not.
"""

from __future__ import annotations

from bisect import bisect_left

from outlive._kernel.client.waiters import Waiters
from outlive._kernel.define.middleware import RunTracer
from outlive._kernel.model import RunStatus
from outlive._kernel.runtime.session.requests import ClaimerRequests
from outlive._kernel.runtime.tree.draft import Draft
from outlive._kernel.runtime.tree.live import LiveTree
from outlive.telemetry import Counters


class RunEnds:
    """The ends of the runs of one session."""

    def __init__(
        self, counters: Counters, *, waiters: Waiters, requests: ClaimerRequests, tracer: RunTracer | None
    ) -> None:
        self._counters = counters
        self._tracer = tracer
        self._run_seconds = counters.measures.run_seconds
        self._waiters = waiters
        self._requests = requests

    def announce(self, live: LiveTree, draft: Draft) -> None:
        """A draft is durable: wake the clients that wait for runs that have ended or are parked in it."""
        if self._tracer is not None:
            self._trace(self._tracer, live, draft)
        for run in (*draft.forgotten, *draft.runs.values()):
            if run.status.is_terminal and run.status is not RunStatus.CONTINUED:
                self._counters.runs_ended += 1
                # `Histogram.add`, written out without a call for every run.
                times, took = self._run_seconds[run.workflow, run.status.value], (run.finished_at or 0) - run.created_at
                times.counts[bisect_left(times.bounds, took)] += 1
                times.sum += took
                self._waiters.announce(run)
                if run.id in self._requests.watched:
                    self._requests.watched.discard(run.id)
                    self._requests.look()
            elif run.status is RunStatus.PARKED:
                self._waiters.announce(run)

    def _trace(self, tracer: RunTracer, live: LiveTree, draft: Draft) -> None:
        for run in (*draft.forgotten, *draft.runs.values()):
            if run.status.is_terminal:
                tracer.ended(run, live.execution.headers, retried=live.execution.retried)
