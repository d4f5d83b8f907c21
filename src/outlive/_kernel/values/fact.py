"""The arguments of the observers of a machine: one small frozen value for each thing that happened."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from outlive._kernel.values.failure import Failure
from outlive._kernel.values.run import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that happened to one run of a machine."""

    run_id: str
    machine: str
    version: int
    state: str
    """The name of the state that the run is in; empty if its journal could not be read."""
    at: datetime
    """When it became a fact, by the clock of the engine, in UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionFact(Fact):
    """A state was left."""

    to: str
    """The name of the state that it goes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFact(Fact):
    """One attempt of a step."""

    step: str
    """`<machine>.<STATE>` for a state that is a step; or a branch, an item, a step of a workflow state."""
    call: str
    """Which call of the step in the run, as journals know it."""
    attempt: int
    """From 1 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureFact(AttemptFact):
    """One attempt of a step that failed."""

    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryFact(FailureFact):
    """Another attempt will be made: `attempt` is its number, `failure` that of the one before."""

    retry_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoFact(AttemptFact):
    """One attempt of an undo; `step` is the undo."""

    undoes: str
    """The call of the step that is undone."""
    failure: Failure | None = None
    """The failure of an undo that failed; None for one that succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitFact(AttemptFact):
    """An attempt of a step was not made: its breaker is open."""

    breaker: str
    until: datetime
    """When it will be tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeFact(Fact):
    """A run goes on here."""

    by: Literal["person", "worker"]
    """A person let it go on, or this worker took it over from another one that was lost or has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonFact(Fact):
    """Something that has a reason, in words for people."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndFact(Fact):
    """A run has ended."""

    status: Status
    failure: Failure | None = None
    """The failure of a run that failed; None for any other end."""
