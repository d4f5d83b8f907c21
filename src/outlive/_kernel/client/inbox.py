"""Sending messages to runs: how a signal is encoded, and what becomes of a message."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from msgspec import Raw

from outlive._garbage_collection import collection_paused
from outlive._kernel.client.access import Access
from outlive._kernel.client.definitions import Definitions
from outlive._kernel.client.slices import mismatch_of
from outlive._kernel.client.turns import Sends
from outlive._kernel.define.workflow import SIGNALS
from outlive._kernel.journal.readable import public_json
from outlive._kernel.journal.value import TAGGED, ValueCodec, encode_sent
from outlive._kernel.model import definition_key
from outlive._kernel.store.contract import Change, Delivery, Message, MessageKind
from outlive.errors import CommitUnknownError, RunFinishedError, RunNotFoundError, UnreadableError, UnserialisableError
from outlive.errors.run import InboxFullError, SignalTypeError

REQUESTS_MAX = 100
"""So many requests of people find room in an inbox that is full: a parked run takes nothing else before it goes on."""
_REQUESTS = (MessageKind.RESUME, MessageKind.SKIP, MessageKind.CANCEL, MessageKind.PAUSE)
START_ADVICE = "send it with a workflow to start, which creates the run if it is not there"
SENDS_MAX = 5
"""How often a message with a key is sent when it is not known whether it arrived."""


class Inbox:
    """Delivers messages, and says why one was refused."""

    def __init__(self, access: Access, *, definitions: Definitions, inbox_messages_max: int) -> None:
        self._access, self._definitions = access, definitions
        self._inbox_messages_max = inbox_messages_max
        self._sends = Sends(seconds=access.store_seconds)

    def close(self) -> None:
        """The engine has stopped: a message that waits for others is not sent."""
        self._sends.close()

    async def deliver(
        self, message: Message, *, start: Change | None = None, then: Message | None = None, connection: Any = None
    ) -> Delivery:
        """Put a message into the inbox; it is durable when this returns: accepted now, or accepted before. Another
        one, `then`, comes right behind it, in the same transaction. With the `connection` of a user, it is delivered
        when the user commits.

        Raises:
            RunNotFoundError, RunFinishedError, InboxFullError.
        """
        if connection is not None:
            delivery = await self._access.store.request_message(connection, message, start=start)
        else:
            delivery = await self._send([message] if then is None else [message, then], start)
        self._access.ring()
        match delivery:
            case Delivery.UNKNOWN_RUN:
                may_start = message.kind in (MessageKind.SIGNAL, MessageKind.ASK)
                raise RunNotFoundError(message.run_id, *([START_ADVICE] if may_start else []))
            case Delivery.FINISHED:
                run = await self._access.store.find_run(message.run_id)
                raise RunFinishedError(message.run_id, run.status.value if run is not None else "ended")
            case Delivery.FULL:
                raise InboxFullError(message.run_id, self._inbox_messages_max)
            case Delivery.ACCEPTED | Delivery.DUPLICATE:
                return delivery

    async def _send(self, messages: list[Message], start: Change | None) -> Delivery:
        """The outcome of the first message that was refused, or else of the first message."""
        loop = asyncio.get_running_loop()
        sends, until = SENDS_MAX if messages[0].key else 1, loop.time() + self._access.store_seconds
        room = self._inbox_messages_max + (REQUESTS_MAX if messages[0].kind in _REQUESTS else 0)
        while True:
            sends -= 1
            try:
                deliver = partial(self._access.store.deliver, messages, start=start, inbox_messages_max=room)
                deliveries = await self._sends.send(deliver)
            except CommitUnknownError:
                # With a key it can be sent again: if it had arrived, the store says so. Not to one that is silent.
                if not sends or loop.time() >= until:
                    raise
            else:
                refused = [it for it in deliveries if it not in (Delivery.ACCEPTED, Delivery.DUPLICATE)]
                return (refused or deliveries)[0]

    async def encode_signal(self, run_id: str, name: str, payload: Any, of: tuple[str, int] | None) -> bytes:
        """The JSON of a signal, by the type that the workflow declares for it, by the code of this process or else by
        what workers have described; `of` is the workflow and version of a run that may not be there yet.

        Raises:
            SignalTypeError: the workflow declares another type.
            UnserialisableError: it has no exact stored form.
        """
        workflow = await self._workflow_that_declares(run_id, name, of)
        what = f"signal {name!r}"
        codec = SIGNALS[workflow].get(name) if workflow in SIGNALS else None
        if workflow is not None and codec is not None:
            try:
                return _encoded(payload, codec, what)
            except (UnserialisableError, UnreadableError) as error:
                raise SignalTypeError(workflow[0], name, "the type it declares", str(error)) from error
        data = bytes(payload) if isinstance(payload, Raw) else encode_sent(payload, what)
        if workflow is not None and workflow not in SIGNALS:
            schema = (await self._definitions.signals()).get(definition_key(*workflow), {}).get(name, {})
            mismatch = await mismatch_of(public_json(data), schema)
            if mismatch is not None:
                raise SignalTypeError(workflow[0], name, "the type it declares", mismatch)
        return data

    async def _workflow_that_declares(
        self, run_id: str, name: str, of: tuple[str, int] | None
    ) -> tuple[str, int] | None:
        """The workflow and version of a run, if any workflow declares a signal of this name."""
        is_declared = any(name in signals for signals in SIGNALS.values())
        if not is_declared and not any(name in each for each in (await self._definitions.signals()).values()):
            return None
        if of is None:
            run = await self._access.store.find_run(run_id)
            of = None if run is None else (run.workflow, run.version)
        return of


def _encoded(payload: Any, codec: ValueCodec, what: str) -> bytes:
    """The JSON of a value of a declared type, which may be given in its public form too.

    Raises:
        UnserialisableError, UnreadableError: it is not of that type.
    """
    if isinstance(payload, Raw):  # A workflow has sent it, and encoded it where it knew its type.
        codec.decode(payload, what)
        return bytes(payload)
    try:
        return codec.encode(payload, what)
    except UnserialisableError as error:
        try:
            data = TAGGED.encode_sent(payload, what)
            with collection_paused():
                codec.decode(data, what)
        except (UnserialisableError, UnreadableError):
            raise error from error.__cause__
        return data
