"""A flow as boxes and arrows: what people look at, with the state of a run in it or without.

A picture needs no code of the steps: it is made of the document and of what the plan says about order.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from outlive._features.flows.run.plan import Plan


class StepState(enum.Enum):
    """Where one step of a flow is, in one run."""

    PENDING = "pending"
    """Steps before it have not ended, or no worker runs its run."""
    RUNNING = "running"
    """It was begun, or is about to be."""
    WAITING = "waiting"
    """A timer, a signal or a person has to come."""
    RETRYING = "retrying"
    """An attempt has failed, and the next one is to come."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNDONE = "undone"
    """It had succeeded, and was taken back because its flow failed later on."""
    SKIPPED = "skipped"
    """It did not run: its condition was false, nothing that ran has needed it, or the run ended before."""


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one step in a run."""

    state: StepState = StepState.PENDING
    attempts: int = 0
    visits: int = 0
    """How often a run has come to it: a state of a machine may have its turn again."""
    took_seconds: float | None = None
    note: str = ""
    """One sentence: the error, or what it waits for."""


Views = Mapping[str, StepView]
NO_RUN: Views = MappingProxyType({})


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A step in a picture."""

    id: str
    use: str
    needs: tuple[str, ...]
    """The steps that come before it."""
    is_conditional: bool = False
    is_needed: bool = True
    """Whether a run comes to it at all: the output needs it, or it must run."""
    is_certain: bool = True
    """Whether every run comes to it; else only one that takes the branch which needs it."""
    depth: int = 0
    """The longest way from a step that needs nothing."""


def nodes_of(plan: Plan) -> list[Node]:
    """The steps of a flow, in the order of the document."""
    steps = plan.document.steps
    places = {id: place for place, id in enumerate(steps)}
    needs = {id: _ordered(step.needs, places) for id, step in plan.all_steps.items()}
    depths = _depths(needs)
    return [
        Node(
            id=id,
            use=step.use,
            needs=needs[id],
            is_conditional=step.if_ not in (None, True),
            is_needed=id in plan.steps,
            is_certain=id in plan.certain or id not in plan.steps,
            depth=depths[id],
        )
        for id, step in steps.items()
    ]


def arrows_of(nodes: Iterable[Node]) -> list[tuple[str, str]]:
    """From which step to which."""
    return [(other, node.id) for node in nodes for other in node.needs]


def _ordered(ids: Iterable[str], places: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted((id for id in ids if id in places), key=places.__getitem__))


def _depths(needs: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """How deep each step is; a plan has no circles. Without recursion: a chain may have thousands of steps."""
    depths: dict[str, int] = {}
    for first in needs:
        left = [first]
        while left:
            id = left[-1]
            missing = [other for other in needs[id] if other not in depths]
            if missing:
                left += missing
                continue
            depths[id] = 1 + max((depths[other] for other in needs[id]), default=-1)
            left.pop()
    return depths
