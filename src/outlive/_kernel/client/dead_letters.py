"""`engine.dead_letters`: messages that a run could not read, folded from its journal, and why each was set aside."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Literal

import msgspec

from outlive._kernel.client.access import Access
from outlive._kernel.journal.event import AnyEvent, ApprovalDecided, MessageSetAside, SignalReceived, SnapshotTaken
from outlive._kernel.journal.value import TAGGED
from outlive._kernel.model import Payload, child_id
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.promise import PROMISE
from outlive._kernel.values.dead_letter import DeadLetter
from outlive.errors import UnreadableError


class DeadLetters:
    """Messages that runs could not read: signals of another type than the workflow waits for, decisions whose form its
    validator refuses."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(self, run_id: str) -> builtins.list[DeadLetter]:
        """Messages that a run and its children could not read, oldest first.

        They block nothing: the run waits for the next signal, or has asked again. Send a right one with `signal`;
        `signal(run_id, it.name, it.value)` sends the same one again, for code that can read it by now.
        """
        return [each async for each in read_dead_letters(self._access, run_id)]


async def read_dead_letters(access: Access, run_id: str, *, bytes_max: int | None = None) -> AsyncIterator[DeadLetter]:
    """The messages that a run and its children could not read, one by one: they may hold more than fits into memory.

    With `bytes_max` their values have no more than that together. `{"[large]": bytes}` stands in the place of others.
    """
    run = await access.info(run_id)
    events = await access.events(run)
    said = dict(_messages(events))
    left = bytes_max
    for fact in _facts(events):
        if run.number not in (0, fact.run):
            continue
        value, size = await value_of(access, fact.payload or said.get(fact.message))
        if left is not None and size > left:
            value = {"[large]": size}
        elif left is not None:
            left -= size
        yield DeadLetter(
            id=fact.message,
            run_id=child_id(run.root_id, fact.run),
            kind=_kind_of(fact),
            name=fact.name,
            reason=fact.reason,
            at=instant_of(fact.at),
            value=value,
        )


async def value_of(access: Access, payload: Payload | None) -> tuple[Any, int]:
    """The value of a message, and its size in bytes."""
    if payload is None:
        return None, 0
    blobs = await access.blobs([payload])
    try:
        data = access.packer.unpack(payload, blobs)
    except UnreadableError:
        return None, 0
    size = len(bytes(data))
    try:
        return TAGGED.decode(data, "a message"), size
    except UnreadableError:
        return msgspec.json.decode(data), size  # Its type has forms of its own for values that TAGGED marks.


def _kind_of(fact: MessageSetAside) -> Literal["signal", "decision", "promise"]:
    if fact.name.startswith(f"{PROMISE}/"):
        return "promise"
    return "decision" if fact.approval else "signal"


def _facts(events: Iterable[AnyEvent]) -> Iterator[MessageSetAside]:
    for event in events:
        if isinstance(event, SnapshotTaken):
            yield from event.set_aside
        elif isinstance(event, MessageSetAside):
            yield event


def _messages(events: Iterable[AnyEvent]) -> Iterator[tuple[str, Payload]]:
    """Every message of a journal, by its place."""
    seq = 0
    for event in events:
        if isinstance(event, SnapshotTaken):
            seq = event.events
            yield from ((f"{seq}.{number}", signal.payload) for number, signal in enumerate(event.signals))
        elif isinstance(event, SignalReceived | ApprovalDecided):
            yield str(seq), event.payload
        seq += 1
