"""Advice in the words of HTTP: `POST /api/v1/runs/order-7/resume` where Python says `engine.resume('order-7')`."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from outlive.errors.advice import Advice, in_words, kind_of, with_effect

REQUESTS: dict[tuple[str, str], str] = {
    ("approvals.list", ""): "GET /api/v1/approvals",
    ("approvals.list", "run_id"): "GET /api/v1/runs/{run_id}/approvals",
    ("ask", "run_id"): "POST /api/v1/runs/{run_id}/asks/{name}",
    ("asks.answer", "run_id"): "GET /api/v1/runs/{run_id}/asks/{name}/{key}",
    ("batches.retry", "batch_id"): "POST /api/v1/batches/{batch_id}/retry",
    ("cancel", "run_id"): "POST /api/v1/runs/{run_id}/cancel",
    ("flows.enable", "name"): "POST /api/v1/flows/{name}/enable",
    ("flows.list", ""): "GET /api/v1/flows",
    ("keys.list", ""): "GET /api/v1/keys",
    ("list", ""): "GET /api/v1/runs",
    ("queues.list", ""): "GET /api/v1/queues",
    ("queues.resume", "queue"): "POST /api/v1/queues/{queue}/resume",
    ("queues.set", "queue"): "PUT /api/v1/queues/{queue}",
    ("resume", "all"): "POST /api/v1/store/resume",
    ("resume", "run_id"): "POST /api/v1/runs/{run_id}/resume",
    ("resume", "workflow"): "POST /api/v1/workflows/{workflow}/resume",
    ("schedules.list", ""): "GET /api/v1/schedules",
    ("schedules.resume", "name"): "POST /api/v1/schedules/{name}/resume",
    ("skip_step", "run_id"): "POST /api/v1/runs/{run_id}/skip",
    ("workflows.list", ""): "GET /api/v1/workflows",
}
"""The request for each kind of advice; its arguments stand in braces."""


def as_requests(advice: Iterable[Advice]) -> str:
    """The requests that a caller sends; empty if none does any of it."""
    said = in_words("", advice, as_request)
    return f"{said}." if said else ""


def as_request(advice: Advice) -> str:
    """One request with its effect; empty if no operation does it."""
    request = REQUESTS.get(kind_of(advice))
    if request is None:
        return ""
    return with_effect(advice, request.format(**{name: quote(str(it), "") for name, it in advice.arguments.items()}))
