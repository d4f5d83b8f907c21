"""Workflows that Outlive itself brings, under names that begin with `outlive.`.

A feature may carry its work in runs of its own: a batch, a delivery, a verb for many runs. It declares a family of
workflows for them. The registry, the claimer and the verbs for single runs ask the family, and know no feature.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from outlive._kernel.journal.redaction import RowNames
from outlive._kernel.model import Run
from outlive._kernel.replay.command import StepSpec, WorkflowSpec

RESERVED = "outlive."
"""The names of these workflows begin so, and names that users give never do."""


class Code(Protocol):
    """The definitions that a process has."""

    def find_step(self, name: str) -> StepSpec | None:
        """The step of this name, if the process has it."""

    def defined(self, name: str, version: int) -> WorkflowSpec | None:
        """The workflow of users with this name and version, or the flow, if the process has it."""

    def has_workflow(self, name: str, version: int) -> bool:
        """Whether the process has the code of a workflow whose runs people retry and fork."""


class OwnWorkflows:
    """A family of workflows that one feature brings."""

    prefix: str
    """Their names begin so, and those of no other family."""
    specs: tuple[WorkflowSpec, ...] = ()
    """Its workflows that need no code of users, so that every worker can run them."""
    unqueued: tuple[WorkflowSpec, ...] = ()
    """The workflows of these whose runs are in no queue: every worker takes them, also a worker of some queues only."""
    retried: tuple[WorkflowSpec, ...] = ()
    """The workflows of these whose runs people retry and fork as they do with their own."""
    is_bounded = False
    """Whether `no_retry_of` looks at the arguments of a run before a principal with bounds retries it."""

    def find(self, code: Code, name: str, version: int) -> WorkflowSpec | None:
        """The workflow of this name and version, if the process has the code that it needs."""
        return next((spec for spec in self.specs if (spec.name, spec.version) == (name, version)), None)

    def names(self, runnable: Iterable[WorkflowSpec], steps: Iterable[StepSpec]) -> Iterable[tuple[str, int]]:
        """The name and version of each workflow of this family that a worker with this code can run."""
        return [(spec.name, spec.version) for spec in self.specs]

    def row_names(self, code: Code, name: str, version: int) -> Sequence[str] | RowNames | None:
        """The names of the arguments of such a run, for `redact`; None where the process does not have the code."""
        spec = self.find(code, name, version)
        return None if spec is None else spec.signature.names

    def no_retry(self, root: Run) -> str:
        """The reason why such a run cannot be retried; empty if it can."""
        return ""

    def no_fork(self, root: Run) -> str:
        """The reason why such a run cannot be forked; empty if it can."""
        return ""

    def no_retry_of(self, arguments: tuple[object, ...]) -> str:
        """The reason why a principal who may change some runs only cannot retry a run with these arguments."""
        return ""


_FAMILIES: list[OwnWorkflows] = []


def declare_own(*families: OwnWorkflows) -> None:
    """Let every registry have these families of workflows."""
    _FAMILIES.extend(families)


def own_families() -> Sequence[OwnWorkflows]:
    """All families."""
    return _FAMILIES


def family_of(workflow: str) -> OwnWorkflows | None:
    """The family that a workflow belongs to; None for a workflow of users."""
    if not workflow.startswith(RESERVED):
        return None
    return next((it for it in _FAMILIES if workflow.startswith(it.prefix)), None)


def is_unqueued(definition: str) -> bool:
    """Whether every worker takes the runs of a definition (`name@version`), whichever queues it takes from."""
    return any(definition == f"{spec.name}@{spec.version}" for it in _FAMILIES for spec in it.unqueued)
