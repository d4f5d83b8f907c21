"""How a new tree of runs begins: its first event, its root row and the change that creates both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from outlive._kernel.client.placing import own_place, put
from outlive._kernel.journal.codec import Row, salt_of, seal
from outlive._kernel.journal.event import RunCreated, SignalReceived
from outlive._kernel.journal.fold import Fold
from outlive._kernel.journal.packing import Packer, tree_mark
from outlive._kernel.model import Payload, Run
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.queue import QueuePlace
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.store.contract import Action, Change, Forgotten


def timeout_from(at: int, seconds: float | None) -> dict[str, Any]:
    """The fields of `RunCreated` that say how long a run may take which is due at an instant."""
    if seconds is None:
        return {}
    span = round(seconds * MICROSECONDS)
    return {"timeout_at": at + span, "timeout": span}


def created(
    *,
    workflow: WorkflowSpec,
    arguments: Payload,
    at: int,
    nonce: int,
    tags: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    timeout_seconds: float | None = None,
    notify: str = "",
    worker: str = "",
    place: QueuePlace | None = None,
) -> RunCreated:
    """The first event of a tree; its place is that of its workflow unless given."""
    seconds = workflow.timeout_seconds if timeout_seconds is None else timeout_seconds
    event = RunCreated(
        at=at,
        workflow=workflow.name,
        version=workflow.version,
        input=arguments,
        nonce=nonce,
        **timeout_from(at, seconds),
        tags=tags or {},
        headers=headers or {},
        worker=worker,
        notify=notify,
        spends_names=True,
    )
    if place is None and workflow.queue:
        place = own_place(workflow)
    return event if place is None else put(event, place)


def new_tree(
    *,
    run_id: str,
    workflow: WorkflowSpec,
    arguments: bytes,
    packer: Packer,
    at: int,
    nonce: int,
    tags: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    timeout_seconds: float | None = None,
    notify: str = "",
    payload: Payload | None = None,
    place: QueuePlace | None = None,
) -> Change:
    """The change that creates a tree which any worker may claim; `payload` is its input if that is stored already."""
    blob = None
    if payload is None:
        payload, blob = packer.pack(arguments, f"the arguments of {workflow.name}", of=tree_mark(nonce))
    event = created(
        workflow=workflow,
        arguments=payload,
        at=at,
        nonce=nonce,
        tags=tags,
        headers=headers,
        timeout_seconds=timeout_seconds,
        notify=notify,
        place=place,
    )
    return birth(run_id, event, [blob] if blob else [])


def birth(
    run_id: str,
    event: RunCreated,
    blobs: list[Blob],
    audit: Action | None = None,
    *,
    signals: Sequence[SignalReceived] = (),
) -> Change:
    """The change that makes an event the first one of a new journal; `signals` are there from the beginning."""
    fold = Fold(run_id)
    fold.apply(event)
    rows = [seal(event, salt=salt_of(event.nonce), seq=0)]
    for signal in signals:
        fold.apply(signal)
        rows.append(seal(signal, salt=salt_of(event.nonce), seq=len(rows)))
    return Change(journal=0, after=-1, rows=rows, runs=[fold.root], blobs=blobs, audit=[audit] if audit else [])


def rebirth(run: Run, event: RunCreated, blobs: list[Blob], *, first: Row) -> Change:
    """The change that puts another first event in the place of the one of a run that has not begun. The journal begins
    with it then: a claim that was made of the old one finds its next seq taken, or what it stands on gone."""
    after, _, prior, _ = first
    fold = Fold(run.id)
    fold.apply(event := msgspec.structs.replace(event, before=after + 1))
    return Change(
        journal=run.journal,
        after=after,
        prior=prior,
        rows=[seal(event, salt=salt_of(event.nonce), seq=after + 1)],
        runs=[msgspec.structs.replace(fold.root, journal=run.journal)],
        blobs=blobs,
        forgets=Forgotten(before=after + 1, below=0),
        is_guarded=True,
    )
