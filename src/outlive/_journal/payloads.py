"""The values in an event, wherever in it they stand."""

from __future__ import annotations

from collections.abc import Iterator

from outlive._journal.event import AnyEvent, SnapshotTaken
from outlive._model import Payload


def payloads_of(event: AnyEvent) -> Iterator[Payload]:
    """Every payload of an event; a snapshot holds those of other events too."""
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, Payload):
            yield value
    if isinstance(event, SnapshotTaken):
        yield from payloads_of(event.created)
        for signal in event.signals:
            yield from payloads_of(signal)
        for message in event.set_aside:
            yield from payloads_of(message)
