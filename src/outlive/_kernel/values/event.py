"""One fact of a journal as people and programs see it."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs, to_builtins

from outlive._kernel.journal.event import AnyEvent, RunClaimed, RunCreated, RunPublished, payloads_of
from outlive._kernel.journal.event import Event as StoredEvent
from outlive._kernel.journal.words import in_words
from outlive._kernel.model import Failure as StoredFailure
from outlive._kernel.model import Payload, child_id
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.worker import name_in
from outlive._kernel.values.failure import Failure, failure_of

PAYLOAD_BYTES_MAX = 64 * 1024
"""Larger payloads are not in a page of a history; each can be asked for by itself."""
SHOWN_CHARACTERS_MAX = 120
"""How much of a value is shown in the words of an event."""
_SECRET_FIELDS = ("nonce", "seed", "digest", "follows", "at", "run")
"""Fields of events that are not shown: what keys and proofs are made of, and what stands beside the fields."""
_PLAIN = frozenset({str, int, bool, float, type(None)})


class Event(Struct, frozen=True):
    """One fact of a journal."""

    seq: int
    """Its number in the journal of its tree."""
    at: datetime
    run_id: str
    """The run that it is about: the root of the tree, or one of its children."""
    type: str
    """The kind of the event: `StepSucceeded`, `SignalReceived`. `outlive.events` lists them all."""
    data: dict[str, Any]
    """Its fields, which the class of that name in `outlive.events` describes; payloads as plain JSON."""
    words: str = ""
    """The event in one sentence."""

    @property
    def failure(self) -> Failure | None:
        """The failure in the event, if there is one."""
        found = self.data.get("failure")
        return None if found is None else msgspec.convert(found, Failure)

    def __repr__(self) -> str:
        return f"<Event {self.seq} {self.type} of {self.run_id}: {self.words}>"


def event_of(seq: int, stored: AnyEvent, root_id: str, *, payload_bytes: int | None = None) -> Event:
    """An event of a journal whose payloads are in their public form, as users see it.

    Args:
        payload_bytes: payloads of more bytes are left out, and `{"[large]": bytes}` says so in their place.
    """
    fields = {}
    for name in _fields_of(type(stored)):
        value = getattr(stored, name)
        # Almost all are plain, and a history has many.
        if type(value) in _PLAIN or (value := _shown(value, payload_bytes)) is not UNSET:
            fields[name] = value
    if isinstance(stored, RunCreated):
        fields["input"] = _arguments(fields.get("input"))
    return Event(
        seq,
        instant_of(stored.at),
        child_id(root_id, stored.run),
        type(stored).__name__,
        fields,
        described(stored),
    )


def payload_size(stored: AnyEvent, *, payload_bytes: int) -> int:
    """How many bytes the payloads have that are shown of an event."""
    size = 0
    for payload in payloads_of(stored):
        if not isinstance(payload.v, UnsetType) and (own := len(bytes(payload.v))) <= payload_bytes:
            size += own
    return size


def described(stored: AnyEvent) -> str:
    """The event in words; with the value, where people follow a run by it."""
    if isinstance(stored, RunClaimed):
        return in_words(structs.replace(stored, worker=name_in(stored.worker)))
    if isinstance(stored, RunPublished):
        value = None if isinstance(stored.payload.v, UnsetType) else msgspec.json.decode(stored.payload.v)
        return f"published {compact(value)}"
    return in_words(stored)


def compact(value: Any) -> str:
    """A plain value in a few words."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[: SHOWN_CHARACTERS_MAX - 3]}..."


@cache
def _fields_of(kind: type[StoredEvent]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name not in _SECRET_FIELDS)


def _shown(value: Any, payload_bytes: int | None) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Payload):
        size = 0 if isinstance(value.v, UnsetType) else len(bytes(value.v))
        if payload_bytes is not None and size > payload_bytes:
            return {"[large]": size}
        return value.v if isinstance(value.v, UnsetType) else msgspec.json.decode(value.v)
    if isinstance(value, tuple):
        return [_shown(each, payload_bytes) for each in value]
    if isinstance(value, StoredFailure):
        return to_builtins(failure_of(value))
    if isinstance(value, Struct):
        # Events inside a snapshot.
        fields = {
            name: _shown(each, payload_bytes)
            for name, each in structs.asdict(value).items()
            if name not in ("nonce", "seed", "digest")
        }
        return fields | {"input": _arguments(fields["input"])} if isinstance(value, RunCreated) else fields
    return to_builtins(value)


def _arguments(value: Any) -> Any:
    """The arguments of a run for people: a list, or an object if all of them were given by name."""
    is_named = isinstance(value, dict) and value.keys() == {"a", "k"} and not value["a"]
    return value["k"] if is_named else value
