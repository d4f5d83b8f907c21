"""Settling promises: find the promise, check the value, and leave exactly one settlement.

A settlement is a signal whose name is that of its promise, and the store keeps one for each key. The key is how many
settlements the run has set aside, because its code could not read them: after each of them one more counts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from outlive._kernel.client.acting import doing
from outlive._kernel.client.client import Client
from outlive._kernel.client.message_key import key_of_signal
from outlive._kernel.client.slices import mismatch_of
from outlive._kernel.journal.event import AnyEvent, MessageSetAside, PromiseMade, RunCreated, SnapshotTaken
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.journal.form import encode_form
from outlive._kernel.journal.packing import inbox_mark
from outlive._kernel.journal.plain import decode_sent
from outlive._kernel.journal.value import TAGGED
from outlive._kernel.model import Run, given
from outlive._kernel.model.promise import PromiseTerms, Settlement, promise_id, promise_signal, run_of_promise
from outlive._kernel.store.contract import Delivery, Message, MessageKind
from outlive.errors import ArgumentTypeError
from outlive.errors.run import PromiseNotFoundError, PromiseTypeError

_decode_terms = msgspec.json.Decoder(PromiseTerms).decode


class Promises:
    """Settles the promises of runs."""

    def __init__(self, client: Client) -> None:
        self._access, self._inbox = client.access, client.sender

    async def resolve(self, promise: str, value: Any = None) -> bool:
        """Settle a promise of a run (`outlive.promise`) with a value, given its id; durable when this returns.

        Settled once: whether it was this call that settled it. If not, nothing has changed; an earlier try of yours may
        have settled it.

        Raises:
            PromiseNotFoundError: no promise has this id. PromiseTypeError: it takes another type.
            RunNotFoundError, RunFinishedError, InboxFullError.
        """
        promise = given.text(
            "engine.promises.resolve", "promise", promise, like="promise.id", most=given.KEY_CHARACTERS_MAX
        )
        run, events = await self._run_of(promise)
        made = _find(promise, run, events)
        terms = _decode_terms(await self._access.unpack(made.payload))
        settlement = Settlement(value=msgspec.Raw(await _encoded(promise, terms, value)))
        return await self._settle(run, made, events, settlement)

    async def fail(self, promise: str, error: Exception) -> bool:
        """Settle a promise of a run with an error, which is raised where the run awaits it. As `resolve`."""
        where = "engine.promises.fail"
        promise = given.text(where, "promise", promise, like="promise.id", most=given.KEY_CHARACTERS_MAX)
        if not isinstance(error, Exception):
            raise ArgumentTypeError(where, "error", error, 'give an exception, for example ValueError("no such order")')
        run, events = await self._run_of(promise)
        return await self._settle(run, _find(promise, run, events), events, Settlement(failure=failure_of(error)))

    async def _run_of(self, promise: str) -> tuple[Run, list[AnyEvent]]:
        run_id = run_of_promise(promise)
        if not run_id:
            raise PromiseNotFoundError(promise, "it is not the id of a promise")
        run = await self._access.info(run_id)
        return run, await self._access.events(run)

    async def _settle(self, run: Run, made: PromiseMade, events: list[AnyEvent], settlement: Settlement) -> bool:
        name = promise_signal(_generation_of(events), made.call)
        data = msgspec.json.encode(settlement)
        stored, blob = self._access.packer.pack(data, f"the settlement of {made.call}", of=inbox_mark(run.id))
        while True:
            refused = _count_set_aside(events, run, name)
            message = Message(
                run_id=run.id,
                kind=MessageKind.SIGNAL,
                at=self._access.store.now(),
                name=name,
                key=key_of_signal(run.id, name, str(refused)),
                payload=stored,
                blobs=(blob,) if blob else (),
            )
            with doing("resolve" if settlement.failure is None else "fail", run.id, made.call):
                is_first = await self._inbox.deliver(message) is Delivery.ACCEPTED
            if is_first:
                return True
            # Settled before; or the run has set that settlement aside since the journal was read.
            events = await self._access.events(run)
            if _count_set_aside(events, run, name) == refused:
                return False


def _find(promise: str, run: Run, events: list[AnyEvent]) -> PromiseMade:
    for event in events:
        if not isinstance(event, PromiseMade) or event.run != run.number:
            continue
        if promise_id(run.id, run.nonce, run.number, event.call) == promise:
            return event
    raise PromiseNotFoundError(
        promise, f"run {run.id!r} has made no such promise, or it was made by a run that had this id before"
    )


async def _encoded(promise: str, terms: PromiseTerms, value: Any) -> bytes:
    """The JSON of a value that fits the schema of a promise."""
    if isinstance(terms.schema, msgspec.UnsetType):
        return TAGGED.encode_sent(value, f"the value of promise {promise}")
    try:
        data = encode_form(value)
    except Exception as error:  # It may be an object of the user's that writes itself.
        raise PromiseTypeError(promise, terms.type, str(error)) from error
    mismatch = await mismatch_of(decode_sent(data), msgspec.json.decode(terms.schema))
    if mismatch is not None:
        raise PromiseTypeError(promise, terms.type, mismatch)
    return data


def _generation_of(events: list[AnyEvent]) -> int:
    first = events[0]
    created = first.created if isinstance(first, SnapshotTaken) else first
    return created.generation if isinstance(created, RunCreated) else 0


def _count_set_aside(events: list[AnyEvent], run: Run, name: str) -> int:
    return sum(isinstance(event, MessageSetAside) and (event.run, event.name) == (run.number, name) for event in events)
