"""Messages that the code cannot read: a signal of another type, a form that its validator refuses.

Failing the run would throw away what it has done. Parking it would not help: the message is a fact, so the next replay
could not read it either, and a right one that is sent later lies behind it. So the run sets the message aside, as a
fact of its own (`MessageSetAside`), and the wait goes on: with the next signal of that name, or with the same request
asked again. People see it in the history, in `why` and in `engine.dead_letters.list`.

Once set aside, a message stays so: a replay finds the fact behind it and does not try to read it, also with code that
could. And a message that code of its time has read is never set aside later: where the journal goes on behind it, code
that cannot read it contradicts the journal, and the run is parked.

A payload that cannot be unpacked is another matter. The key or the blob is missing here and not wrong: that parks the
run, which goes on with the message when the key or the blob is back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from outlive._kernel.journal.event import MessageSetAside
from outlive._kernel.journal.failure import storable
from outlive._kernel.journal.value import Stored
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import Frame, Received
from outlive.errors import UnreadableError

T = TypeVar("T")

SET_ASIDE = "@set_aside"
REASON_CHARACTERS_MAX = 1_000


def read_or_set_aside(
    execution: Execution, frame: Frame, message: Received, read: Callable[[Stored], T], *, name: str, approval: str = ""
) -> tuple[T] | None:
    """The value that `read` finds in a message, in a tuple of one; None if the message was set aside.

    Raises:
        UnreadableError: it cannot be unpacked here, or the journal says that it was read and this code cannot read it.
    """
    known = execution.ahead.set_aside.get((frame.number, message.place))
    if known is not None:
        fact = msgspec.structs.replace(known, at=0)
    else:
        data = execution.unpack(message.payload)
        try:
            return (read(data),)
        except UnreadableError as error:
            if execution.events <= execution.ahead.passed:
                raise
            fact = MessageSetAside(
                at=0,
                run=frame.number,
                call=f"{SET_ASIDE}/{message.place}",
                name=name,
                message=message.place,
                reason=_reason_of(error),
                approval=approval,
            )
    execution.record(fact)
    frame.add_set_aside(msgspec.structs.replace(fact, at=execution.loop.now_at, payload=message.payload))
    return None


def _reason_of(error: UnreadableError) -> str:
    """One line: validators write several."""
    reason = " ".join(f"it cannot be read as {error.type_name}: {error.reason}".split())
    return storable(reason[:REASON_CHARACTERS_MAX])
