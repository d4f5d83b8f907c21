"""The next generation of a run: the same id, a fresh journal, and the messages that the old one has not used.

It is created in the transaction that ends the old generation, so there is always exactly one that is open. The rows of
the old tree are renamed to `<id>~gen1`, `<id>~gen2`, ...; the number is kept in `RunCreated`, so the next free name
needs no look-up. What was sent to the old generation reaches the new one: signals that no workflow had received, and
asks that it had not answered, are events of its journal, and the store moves what is still in the inbox
(`Change.successor_of`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from outlive._kernel.client.closing import renamed
from outlive._kernel.journal.codec import salt_of, seal
from outlive._kernel.journal.event import AnyEvent, AskReceived, RunCreated, SignalReceived
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Payload, Run, generation_id
from outlive._kernel.model.payload import Blob
from outlive._kernel.replay.command import Successor
from outlive._kernel.store.contract import Change


def next_generation(
    successor: Successor,
    tree: dict[int, Run],
    *,
    journal: int,
    generation: int,
    created: RunCreated,
    at: int,
    nonce: int,
    arguments: Payload,
    published: Payload | None,
    blobs: list[Blob],
    signals: Iterable[tuple[str, Payload]],
    asks: Iterable[AskReceived],
) -> Change:
    """The change that creates the next generation of a tree, whose rows are given as they are when it has ended."""
    root = tree[0]
    events: list[AnyEvent] = [
        RunCreated(
            at=at,
            workflow=successor.workflow.name,
            version=successor.workflow.version,
            input=arguments,
            nonce=nonce,
            timeout_at=root.timeout_at,
            timeout=created.timeout,
            tags=root.tags,
            headers=created.headers,
            notify=root.parent_id or "",
            generation=generation + 1,
            published=published,
            queue=created.queue,
            queue_key=created.queue_key,
            lead=created.lead,
            slots=created.slots,
            frees_slot=created.frees_slot,
            has_slot=bool(created.queue),
            spends_names=True,
        )
    ]
    events += [SignalReceived(at=at, name=name, payload=payload) for name, payload in signals]
    events += [msgspec.structs.replace(ask, at=at) for ask in asks]
    fold, salt = Fold(root.id), salt_of(nonce)
    for event in events:
        fold.apply(event)
    old = {number: msgspec.structs.replace(run, journal=journal) for number, run in tree.items()}
    return Change(
        journal=0,
        after=-1,
        rows=[seal(event, salt=salt, seq=seq) for seq, event in enumerate(events)],
        runs=[fold.root],
        renames=renamed(old, name=generation_id(root.id, generation + 1)),
        blobs=blobs,
        successor_of=journal,
    )
