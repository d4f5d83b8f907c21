"""`engine.dead_letters`: messages that a run could not read, folded from its journal, and why each was set aside."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from outlive._journal.event import AnyEvent, ApprovalDecided, MessageSetAside, SignalReceived, SnapshotTaken
from outlive._journal.value import TAGGED, Stored
from outlive._model import Payload, Run, child_id
from outlive._model.instant import instant_of
from outlive._model.promise import PROMISE
from outlive._values.dead_letter import DeadLetter
from outlive.client.access import Access
from outlive.errors import UnreadableError

Unpack = Callable[[Payload], Stored]


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
        run = await self._access.info(run_id)
        events = await self._access.events(run)
        blobs = await self._access.blobs(payloads_set_aside(events))
        return dead_letters_in(events, run, lambda payload: self._access.packer.unpack(payload, blobs))


def dead_letters_in(events: Sequence[AnyEvent], run: Run, unpack: Unpack) -> list[DeadLetter]:
    """The messages that were set aside in the tree of a run, oldest first; of a child, only its own."""
    said = dict(_messages(events))
    found = [fact for fact in _facts(events) if run.number in (0, fact.run)]
    return [
        DeadLetter(
            id=fact.message,
            run_id=child_id(run.root_id, fact.run),
            kind=_kind_of(fact),
            name=fact.name,
            reason=fact.reason,
            at=instant_of(fact.at),
            value=_plain(fact.payload or said.get(fact.message), unpack),
        )
        for fact in found
    ]


def _kind_of(fact: MessageSetAside) -> Literal["signal", "decision", "promise"]:
    if fact.name.startswith(f"{PROMISE}/"):
        return "promise"
    return "decision" if fact.approval else "signal"


def payloads_set_aside(events: Iterable[AnyEvent]) -> list[Payload]:
    """What is needed to show them."""
    return [fact.payload for fact in _facts(events) if fact.payload] + [payload for _, payload in _messages(events)]


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


def _plain(payload: Payload | None, unpack: Unpack) -> Any:
    if payload is None:
        return None
    try:
        data = unpack(payload)
    except UnreadableError:
        return None
    try:
        return TAGGED.decode(data, "a message")
    except UnreadableError:
        return msgspec.json.decode(data)  # Of a type that has forms of its own for what TAGGED marks.
