"""Messages that runs could not read, as people and programs see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that the code of a run could not read. It blocks nothing: the run waits for the next one."""

    id: str
    """Where it is in the journal; tells the messages of one tree apart."""
    run_id: str
    kind: Literal["signal", "decision", "promise"]
    name: str
    """The name of the signal or of the approval; of a promise, its call."""
    reason: str
    """Why it could not be read."""
    at: datetime
    """When it was set aside."""
    value: Any
    """The content of the message, as plain values; None if that cannot be read here."""

    def __repr__(self) -> str:
        return f"<DeadLetter {self.kind} {self.name} of {self.run_id}: {self.reason}>"
