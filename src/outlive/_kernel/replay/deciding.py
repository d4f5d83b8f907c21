"""Decisions of a run that need no answer: it shows an object to people, sets tags, chooses its way past a change, or
continues as new.

No event answers these. Each becomes a fact in the transaction of the event that led to it, and a replay finds it there.
What it emits is not a fact of the journal, but it is written in that transaction too, so a replay emits nothing: see
`Lookahead.written` for the two places at which that is not certain.

What a run publishes is one object, and every publication carries it whole: the latest one says all. It
is known as JSON only, so that nothing that the workflow changes later in its values changes what was said.

A mark of a change (`patched`) asks, the first time that a run comes by: has code without the mark been here before? If
the journal goes on beyond this point and does not have the mark, it has, and the run takes the old way for good. If
not, the mark goes into the journal, and the run takes the new way for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn
from zlib import crc32

from outlive._kernel.journal.event import PatchTaken, RunPublished, RunTagged
from outlive._kernel.journal.readable import READABLE
from outlive._kernel.journal.value import TAGGED
from outlive._kernel.model import given
from outlive._kernel.model.payload import NO_PAYLOAD
from outlive._kernel.model.published import REMOVED
from outlive._kernel.replay.command import Emit, Successor, WorkflowSpec
from outlive._kernel.replay.ending import ContinueAsNew
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import PATCH, SCOPE
from outlive.errors import ConfigurationError, InvalidArgumentError


def publish(execution: Execution, fields: dict[str, Any]) -> None:
    """Show `fields` to people, beside what the run has shown before."""
    execution.refuse_if_dropped()
    scope = SCOPE.get()
    frame = scope.frame
    merged = merge_published(frame.published, fields)
    if merged == frame.published:
        return
    frame.published = merged
    fact = RunPublished(at=0, run=frame.number, payload=NO_PAYLOAD, call=scope.call("@publish"), digest=crc32(merged))
    execution.record(fact, merged)


def set_tags(execution: Execution, changes: Mapping[str, str | None]) -> None:
    """Give the run these tags beside its other tags; None removes one."""
    execution.refuse_if_dropped()
    scope = SCOPE.get()
    frame = scope.frame
    merged = {name: value for name, value in {**frame.tags, **changes}.items() if value is not None}
    if merged == frame.tags:
        return
    if len(merged) > given.TAGS_MAX:
        wanted = f"a run has at most {given.TAGS_MAX} tags, and this would make {len(merged)}; use None to remove one"
        raise InvalidArgumentError("outlive.set_tags", "tags", dict(changes), wanted)
    frame.tags = merged
    execution.record(RunTagged(at=0, run=frame.number, call=scope.call("@tags"), tags=merged))


def merge_published(before: bytes, fields: dict[str, Any]) -> bytes:
    """The JSON of what is published, with some fields replaced or removed.

    Raises:
        UnserialisableError: a value has no stored form.
    """
    what = "what is published"
    known: dict[str, Any] = TAGGED.decode(before, what)
    merged = {**known, **fields}
    return READABLE.encode({name: value for name, value in merged.items() if value is not REMOVED}, what)


def emit(execution: Execution, stream: str, value: Any) -> None:
    """Let readers of a stream have an item; once, however often the code comes by."""
    execution.refuse_if_dropped()
    frame = SCOPE.get().frame
    data = READABLE.encode(value, f"an item of stream {stream!r}")
    frame.emitted_items += 1
    frame.emitted_bytes += len(data)
    number = execution.next_emission()
    if execution.events > execution.ahead.written:
        execution.commands.append(
            Emit(frame.number, stream, data, number, items=frame.emitted_items, bytes=frame.emitted_bytes)
        )


def patched(execution: Execution, name: str) -> bool:
    """Whether the run takes the new way at this mark; once decided, for the rest of its life."""
    execution.refuse_if_dropped()
    frame = SCOPE.get().frame
    call = f"{PATCH}{name}"
    execution.unasked_marks.pop((frame.number, call), None)
    if call not in frame.patches:
        ahead = execution.ahead
        is_new = (frame.number, call) in ahead.patches or execution.events >= ahead.last
        frame.patches[call] = is_new
        if is_new:
            execution.record(PatchTaken(at=0, run=frame.number, call=call))
    return frame.patches[call]


def continue_as_new(
    execution: Execution, spec: WorkflowSpec | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> NoReturn:
    """End this generation of the run; the next one is of `spec`, or of the same workflow and version."""
    execution.refuse_if_dropped()
    frame = SCOPE.get().frame
    if frame.number:
        raise ConfigurationError(
            f"continue_as_new in {frame.id}, a child run: its parent's journal would grow all the same; start it as a "
            f"run of its own with outlive.start({frame.spec.name}, ..., detached=True)"
        )
    spec = frame.spec if spec is None else spec
    raise ContinueAsNew(Successor(spec, spec.signature.encode(args, kwargs)))
