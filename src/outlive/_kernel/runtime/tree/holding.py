"""Trees that begin nothing more: a person has paused them, or a step of theirs needs more time than the worker has.

A tree that is held begins no step and fires no timer. The steps that run end, and their results are recorded; then the
tree leaves memory: parked, if the run itself was paused, or released, if its workflow was, or for a worker with more
time, and the claimer leaves it alone. Messages for it stay in the inbox meanwhile. A request to go on that comes before
it has left turns the parking into a release: another claim goes on with it, from its journal.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from outlive._kernel.store.contract import InboxMessage, MessageKind


class TreeHold(msgspec.Struct, frozen=True):
    """The plan for a held tree when nothing of it runs any more: it is parked or released."""

    reason: str = ""
    """Why it is parked, or released for a worker with more time; empty if its workflow is paused."""
    consumed: tuple[int, ...] = ()
    """The messages that its parking makes facts."""
    is_unfit: bool = False
    """Whether it is released for a worker that has more time."""


def cancels_root(inbox: Iterable[InboxMessage]) -> bool:
    """Whether a tree with this inbox is to end, as a whole."""
    return any(message.kind is MessageKind.CANCEL and message.run == 0 for message in inbox)


def pause_in(inbox: Iterable[InboxMessage]) -> TreeHold | None:
    """How a tree with this inbox is to be held; None if a message wants it to go on, or does not say."""
    pauses: list[InboxMessage] = []
    for message in inbox:
        if message.kind is MessageKind.PAUSE:
            pauses.append(message)
        elif message.kind is MessageKind.RESUME or cancels_root([message]):
            pauses = []
    return TreeHold(pauses[-1].name, tuple(message.id for message in pauses)) if pauses else None
