"""One fact of a journal as people and programs see it.

A journal has instants and spans as microseconds, runs of a tree as numbers, and fields that only the engine reads. The
tables here say for every field of every kind of event what people see of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs, to_builtins

from outlive._kernel.journal.event import (
    AnyEvent,
    ApprovalDecided,
    ApprovalRequested,
    RunClaimed,
    RunCreated,
    RunPublished,
    SnapshotTaken,
    payloads_of,
)
from outlive._kernel.journal.words import in_words
from outlive._kernel.model import Failure as StoredFailure
from outlive._kernel.model import Payload, child_id
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.wait import for_people
from outlive._kernel.model.worker import name_in
from outlive._kernel.values.failure import Failure, failure_of
from outlive._kernel.values.run import Wait, wait_of

PAYLOAD_BYTES_MAX = 64 * 1024
"""Larger payloads are not in a page of a history; each can be asked for by itself."""
SHOWN_CHARACTERS_MAX = 120
"""How much of a value is shown in the words of an event."""
INSTANTS = frozenset(
    {
        *("at", "begin_by", "begun_at", "deadline_at", "escalate_at", "first_at", "moved_at", "retry_at", "since_at"),
        *("start_at", "timeout_at", "until_at", "wake_at"),
    }
)
"""Fields that are a datetime; None where a journal has 0."""
_LONGEST = timedelta.max // timedelta(microseconds=1)
"""An event of a file may name a longer span: it is shown as the longest that there is."""
SPANS = frozenset({"remind_every", "rested", "timeout", "took"})
"""Fields that are a timedelta; None where a journal has 0."""
RUNS = {"run": "run_id", "parent": "parent_id"}
"""Fields that are the number of a run in its tree, with the name of the field in which its id is shown."""
_INTERNAL = frozenset(
    {
        # Parts of keys and proofs.
        *("nonce", "seed", "digest", "follows", "asked"),
        # Notes of the engine, by which it goes on with a run.
        *("before", "checked", "epoch", "forks", "next_number", "notify", "rests", "spends_names", "unread"),
        # Places in the line of a queue or a rate limit.
        *("frees_slot", "gives_way", "has_slot", "has_turn", "lead"),
    }
)
_BESIDE = frozenset({"at", "run"})
"""Fields that stand beside `data`, in the event itself."""
_PLAIN = frozenset({str, int, bool, float, type(None)})
_OF_APPROVALS = {ApprovalRequested.__name__, ApprovalDecided.__name__}
"""Events whose payload is of Outlive and not of a program, so that its fields are in the tables."""
_OF_DECISIONS = frozenset({"id", *_INTERNAL})
_TYPES: dict[str, Any] = {
    **dict.fromkeys(INSTANTS, datetime),
    **dict.fromkeys(SPANS, timedelta),
    "failure": Failure,
    "waits": list[Wait],
}
"""The fields of `data` that JSON has no type for."""
_NESTED = frozenset({"created", "interrupted", "signals", "asks", "set_aside"})
"""Fields that have such fields inside."""


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
    """Its fields, which the class of that name in `outlive.events` describes: instants as datetimes, spans as
    timedeltas, values of programs as plain JSON, and nothing that only the store reads."""
    words: str = ""
    """The event in one sentence."""

    def __post_init__(self) -> None:
        # A connection has read JSON. What an engine has made stays as it is.
        _give_types(self.data, nested=_NESTED | {"payload"} if self.type in _OF_APPROVALS else _NESTED)

    @property
    def failure(self) -> Failure | None:
        """The failure in the event, if there is one."""
        return self.data.get("failure")

    def __repr__(self) -> str:
        return f"<Event {self.seq} {self.type} of {self.run_id}: {self.words}>"


def event_of(seq: int, stored: AnyEvent, root_id: str, *, payload_bytes: int | None = None) -> Event:
    """An event of a journal whose payloads are in their public form, as users see it.

    Args:
        payload_bytes: payloads of more bytes are left out, and `{"[large]": bytes}` says so in their place.
    """
    return Event(
        seq,
        instant_of(stored.at),
        child_id(root_id, stored.run),
        type(stored).__name__,
        _shown_fields(stored, root_id, payload_bytes, without=_BESIDE),
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
def public_fields(kind: type[Struct], without: frozenset[str] = _BESIDE) -> tuple[str, ...]:
    """The fields of a kind of event, or of a part of one, that people see, by their names in the journal."""
    internal = _INTERNAL | without | ({"payload"} if kind is SnapshotTaken else set())
    return tuple(name for name in kind.__struct_fields__ if name not in internal)


def _shown_fields(
    stored: Struct, root_id: str, payload_bytes: int | None, *, without: frozenset[str] = frozenset()
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in public_fields(type(stored), without):
        value = getattr(stored, name)
        if name in RUNS:
            fields[RUNS[name]] = child_id(root_id, value)
        elif name == "worker":
            fields[name] = name_in(value)
        elif name in _TYPES or type(value) not in _PLAIN:
            if (value := _shown(name, value, root_id, payload_bytes)) is not UNSET:
                fields[name] = value
        else:
            # Almost all are plain, and a history has many.
            fields[name] = value
    if isinstance(stored, RunCreated):
        fields["input"] = _arguments(fields.get("input"))
        fields["parent_id"] = fields["parent_id"] if stored.run else None
    if isinstance(stored, ApprovalRequested | ApprovalDecided) and isinstance(fields.get("payload"), dict):
        fields["payload"] = _of_people(fields["payload"])
    return fields


def _shown(name: str, value: Any, root_id: str, payload_bytes: int | None) -> Any:
    if name in INSTANTS:
        return instant_of(value) if value else None
    if name in SPANS:
        return timedelta(microseconds=min(value, _LONGEST)) if value else None
    if name == "waits":
        return [wait_of(each, root_id) for each in for_people(value)]
    if isinstance(value, Payload):
        size = 0 if isinstance(value.v, UnsetType) else len(bytes(value.v))
        if payload_bytes is not None and size > payload_bytes:
            return {"[large]": size}
        return value.v if isinstance(value.v, UnsetType) else msgspec.json.decode(value.v)
    if isinstance(value, StoredFailure):
        return failure_of(value)
    if isinstance(value, tuple):
        return [_shown("", each, root_id, payload_bytes) for each in value]
    # Events inside a snapshot, and steps that an end interrupted.
    return _shown_fields(value, root_id, payload_bytes) if isinstance(value, Struct) else to_builtins(value)


def _of_people(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The request to people or the decision in a payload, as people see it."""
    kept = {name: value for name, value in payload.items() if name not in _OF_DECISIONS}
    return {name: _shown(name, it, "", None) if type(it) is int else it for name, it in kept.items()}


def _give_types(fields: dict[str, Any], *, nested: frozenset[str]) -> None:
    """Turn the fields of `data` that were read from JSON into what an engine gives."""
    for name, value in fields.items():
        if name in _TYPES and value is not None:
            fields[name] = msgspec.convert(value, _TYPES[name])
        elif name in nested:
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, dict):
                    _give_types(each, nested=nested)


def _arguments(value: Any) -> Any:
    """The arguments of a run for people: a list, or an object if all of them were given by name."""
    is_named = isinstance(value, dict) and value.keys() == {"a", "k"} and not value["a"]
    return value["k"] if is_named else value
