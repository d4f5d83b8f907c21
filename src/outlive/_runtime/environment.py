"""What an engine was built with and its parts need."""

from __future__ import annotations

from typing import NamedTuple

from outlive._define.in_step import Verbs
from outlive._define.live_resources import LiveResources
from outlive._define.middleware import AroundWorkflow, Hook, RunTracer
from outlive._define.registry import Registry
from outlive._journal.packing import Packer
from outlive._model import Limits, Retry
from outlive._model.recovery import Recovery
from outlive._runtime.clock import Clock
from outlive.telemetry import Counters


class Environment(NamedTuple):
    """The same for all sessions of an engine."""

    clock: Clock
    counters: Counters
    limits: Limits
    recovery: Recovery
    packer: Packer
    registry: Registry
    resources: LiveResources
    on_step: tuple[Hook, ...] = ()
    """Middleware around the attempts of steps."""
    around: AroundWorkflow | None = None
    """Middleware around workflows."""
    engine: Verbs | None = None
    """The engine itself, for its steps."""
    retry: Retry | None = None
    """For steps that have none of their own, in workflows that have none."""
    tracer: RunTracer | None = None
    """Traces runs, if the engine has such middleware."""
