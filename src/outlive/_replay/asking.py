"""A request for approval that a run waits for, as long as it is in memory."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec

from outlive._journal.value import Stored
from outlive._model import Payload, Wait, WaitKind
from outlive._model.approval import Decision
from outlive.errors import UnreadableError

_decode_decision = msgspec.json.Decoder(Decision).decode


class Received(NamedTuple):
    """A message of the world in the hands of a run."""

    payload: Payload
    place: str
    """Where it is in the journal: the seq of its event, or the seq of a snapshot and its place there."""


Decided = tuple[Decision | UnreadableError, Received]
"""What a person decided, or why that cannot be read; and the message as it came."""


class Asking:
    """One request that nobody has decided yet."""

    __slots__ = ("again", "assignees", "call", "deadline_at", "future", "name", "title")

    def __init__(
        self,
        call: str,
        future: asyncio.Future[Decided],
        *,
        name: str,
        title: str,
        assignees: tuple[str, ...],
        deadline_at: int | None,
        again: str,
    ) -> None:
        self.call = call
        self.future = future
        self.name = name
        self.title = title
        self.assignees = assignees
        self.deadline_at = deadline_at
        self.again = again
        """Why it is asked again; empty the first time."""

    def wait(self, run: int) -> Wait:
        """The wait as data."""
        told = [f'("{self.title}")'] if self.title else []
        told += [f"by {', '.join(self.assignees)}"] if self.assignees else []
        told += [f"(asked again, as the decision could not be used: {self.again})"] if self.again else []
        return Wait(kind=WaitKind.APPROVAL, name=self.name, until_at=self.deadline_at, run=run, told=" ".join(told))


def read_decision(data: Stored, approval: str) -> Decision | UnreadableError:
    """A decision as a journal has it, or why it is none."""
    try:
        return _decode_decision(data)
    except msgspec.MsgspecError as error:
        return UnreadableError(f"the decision on {approval}", "a decision", str(error))
