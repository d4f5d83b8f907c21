"""The settings of an engine that its parts need."""

from __future__ import annotations

from typing import NamedTuple

from outlive._kernel.define.in_step import Verbs
from outlive._kernel.define.live_resources import LiveResources
from outlive._kernel.define.middleware import AroundWorkflow, Hook, RunTracer
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.packing import Packer
from outlive._kernel.journal.redaction import Redaction
from outlive._kernel.model import Limits, Retry
from outlive._kernel.model.recovery import Recovery
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.lifetime import Lifetime
from outlive.telemetry import Counters


class ReplayPace(NamedTuple):
    """How long a replay keeps the event loop, and how much of a journal is in memory at once."""

    slice_seconds: float = 0.004
    pause_seconds: float = 0.07
    """Between two slices, if others commit: a replay takes an eighteenth of the time then."""
    rows_max: int = 1_000
    """Events that are read at once; a journal with fewer is read together with others."""
    blobs_max: int = 16
    """Blobs that are read at once for one run."""


class Environment(NamedTuple):
    """The parts of an engine that all of its sessions share."""

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
    replay_pace: ReplayPace = ReplayPace()
    recording: Redaction | None = None
    """The redaction of the arguments of steps that are recorded with their outcomes; None if none are recorded."""
    redaction: Redaction = Redaction()
    """The fields that people may not see."""
    lifetime: Lifetime | None = None
    """The bounds of a worker whose host ends; None for a worker that works until it is asked to stop."""
