"""Messages that a run has not read, as people and programs see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

MessageKindShown = Literal["signal", "ask", "promise", "decision", "end", "cancel", "pause", "resume", "skip"]


class UnreadMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to a run that its code has not read, as far as the store knows."""

    run_id: str
    """The run of the tree that it is for."""
    kind: MessageKindShown
    """The kind of the message; `end` is the end of a run that this one started or waits for."""
    name: str
    """The name of the signal or the ask; of a promise or a decision its call; of an end the id of that run."""
    key: str
    """The key that the sender gave; empty if none."""
    at: datetime
    """When it was sent; of a message that a worker has taken, when that was."""
    state: Literal["inbox", "buffered", "taken"]
    """How far it is:

    - `inbox`: no worker has taken it yet.
    - `buffered`: a worker has put it into the journal, and the code of the run has not asked for it; an ask has no
      answer.
    - `taken`: the same, but a worker has had the run since it was last suspended, so that its code may have read it.
    """
    value: Any
    """The content of the message, as plain values; None if it has none, or if that cannot be read here."""

    def __repr__(self) -> str:
        return f"<UnreadMessage {self.kind} {self.name} to {self.run_id}: {self.state}>"
