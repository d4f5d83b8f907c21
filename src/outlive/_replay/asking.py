"""A request for approval that a run waits for, as long as it is in memory."""

from __future__ import annotations

import asyncio

import msgspec

from outlive._journal.value import Stored
from outlive._model import Wait, WaitKind
from outlive._model.approval import Decision
from outlive.errors import UnreadableError

_decode_decision = msgspec.json.Decoder(Decision).decode


class Asking:
    """One request that nobody has decided yet."""

    __slots__ = ("assignees", "call", "deadline_at", "future", "name", "title")

    def __init__(
        self,
        call: str,
        future: asyncio.Future[Decision],
        *,
        name: str,
        title: str,
        assignees: tuple[str, ...],
        deadline_at: int | None,
    ) -> None:
        self.call = call
        self.future = future
        self.name = name
        self.title = title
        self.assignees = assignees
        self.deadline_at = deadline_at

    def wait(self, run: int) -> Wait:
        """The wait as data."""
        told = [f'("{self.title}")'] if self.title else []
        told += [f"by {', '.join(self.assignees)}"] if self.assignees else []
        return Wait(kind=WaitKind.APPROVAL, name=self.name, until_at=self.deadline_at, run=run, told=" ".join(told))


def read_decision(data: Stored, approval: str) -> Decision:
    """A decision as a journal has it.

    Raises:
        UnreadableError: it is something else.
    """
    try:
        return _decode_decision(data)
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"the decision on {approval}", "a decision", str(error)) from error
