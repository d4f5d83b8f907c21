"""The tasks of remote steps on the wire."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from outlive._features.tasks.values import Task
from outlive._features.tasks.verbs import LEASE_SECONDS, LEASE_SECONDS_MAX, STEPS_MAX
from outlive.http.wire.page import Json, Key, Name, Span

LeaseSeconds = Annotated[float, Meta(ge=1, le=LEASE_SECONDS_MAX)]


class StepSchemas(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The schemas of a remote step, for people and for checks of documents."""

    input: dict[str, Any] | None = None
    """The JSON Schema of its input: at most 8,192 bytes, 500 maps and lists, and 20 levels."""
    output: dict[str, Any] | None = None
    """The JSON Schema of its output, with the same limits."""


class ClaimTask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which task is wanted."""

    queue: Name
    steps: (
        Annotated[list[Name], Meta(min_length=1, max_length=STEPS_MAX)]
        | Annotated[dict[Name, StepSchemas], Meta(min_length=1, max_length=STEPS_MAX)]
    )
    """The names of the remote steps that the caller can do; or each name with the schemas of the step."""
    worker: Annotated[str, Meta(max_length=200)] = ""
    """The name of the caller, for people."""
    lease_seconds: LeaseSeconds = LEASE_SECONDS
    """How long the task is the caller's without a heartbeat; then another one may claim it."""
    wait: Span = 20.0
    """How long to wait for a task, up to a limit of the server."""


class Claimed(Struct, frozen=True, kw_only=True):
    """The next task; null if there was none."""

    task: Task | None


class Heartbeat(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sign of life."""

    lease: Key
    progress: dict[str, Any] | UnsetType = UNSET
    """Progress for people, and for the next worker if this one is lost."""
    lease_seconds: LeaseSeconds = LEASE_SECONDS


class CompleteTask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a task ended well."""

    lease: Key
    output: Json = None


class FailTask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a task failed."""

    lease: Key
    message: str
    """The message for people: its beginning, if it is long."""
    type: Name = "RemoteError"
    """The class of the error, as the worker calls it."""
    retryable: bool = True
    """Whether another attempt may help, if the step has one left."""
    retry_after: Span | None = None
    """How long until the next attempt."""
    traceback: str = ""
    """Its end, if it is long."""
