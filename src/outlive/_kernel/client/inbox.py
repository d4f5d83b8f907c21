"""Sending messages to runs: how a signal is encoded, and what becomes of a message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from outlive.errors import (
    CommitUnknownError,
    OutliveError,
    RunFinishedError,
    RunNotFoundError,
    UnreadableError,
    UnserialisableError,
)
from outlive.errors.run import InboxFullError, SignalTypeError

REQUESTS_MAX = 100
"""So many requests of people find room in an inbox that is full: a parked run takes nothing else before it goes on."""
TAKEN = (Delivery.ACCEPTED, Delivery.DUPLICATE)
_REQUESTS = (MessageKind.RESUME, MessageKind.SKIP, MessageKind.CANCEL, MessageKind.PAUSE, MessageKind.CHANGE)
START_ADVICE = "send it with a workflow to start, which creates the run if it is not there"
LIVES_MAX = 100
"""How many runs of an id a message follows, each of which ends before the message arrives."""
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
        self,
        message: Message,
        *,
        start: Change | None = None,
        again: Callable[[], Awaitable[Change]] | None = None,
        then: Message | None = None,
        connection: Any = None,
    ) -> Delivery:
        """Put a message into the inbox; it is durable when this returns: accepted now, or accepted before. Another
        one, `then`, comes right behind it, in the same transaction. With the `connection` of a user, it is delivered
        when the user commits. If the run has ended, it is for the run that `again` begins.

        Raises:
            RunNotFoundError, RunFinishedError, InboxFullError.
        """
        if connection is not None:
            delivery = await self._access.store.request_message(connection, message, start=start)
        else:
            starts = () if start is None else (start,)
            deliveries = await self._send([message] if then is None else [message, then], starts)
            delivery = next((it for it in deliveries if it not in TAKEN), deliveries[0])
            for _ in range(LIVES_MAX if again is not None else 0):
                if delivery is not Delivery.FINISHED:
                    break
                assert again is not None
                delivery = await self.begin_again(message, again)
        self._access.ring()
        if delivery not in TAKEN:
            raise (await self._refusals({0: message}, {0: delivery}))[0]
        return delivery

    async def begin_again(self, message: Message, again: Callable[[], Awaitable[Change]]) -> Delivery:
        """Put a message into the inbox of the run that `again` begins after the end of the run before. If another
        caller begins it at the same moment, the message is for that run."""
        (delivery,) = await self._send([message], (await again(),))
        return delivery

    async def deliver_many(self, messages: Sequence[Message], *, starts: Sequence[Change]) -> dict[int, OutliveError]:
        """Put messages into their inboxes in one transaction, behind the trees that they may need; why some of them
        were refused, by their places."""
        deliveries = await self._send(messages, starts)
        self._access.ring()
        refused = {at: it for at, it in enumerate(deliveries) if it not in TAKEN}
        return await self._refusals(dict(enumerate(messages)), refused) if refused else {}

    async def _refusals(
        self, messages: Mapping[int, Message], refused: Mapping[int, Delivery]
    ) -> dict[int, OutliveError]:
        """The errors of messages that were refused."""
        finished = [messages[at].run_id for at, delivery in refused.items() if delivery is Delivery.FINISHED]
        ended = await self._access.store.find_runs(finished) if finished else {}
        errors: dict[int, OutliveError] = {}
        for at, delivery in refused.items():
            message, run_id = messages[at], messages[at].run_id
            match delivery:
                case Delivery.UNKNOWN_RUN:
                    may_start = message.kind in (MessageKind.SIGNAL, MessageKind.ASK)
                    errors[at] = RunNotFoundError(run_id, *([START_ADVICE] if may_start else []))
                case Delivery.FINISHED:
                    errors[at] = RunFinishedError(run_id, ended[run_id].status.value if run_id in ended else "ended")
                case Delivery.FULL:
                    errors[at] = InboxFullError(run_id, self._inbox_messages_max)
                case Delivery.ACCEPTED | Delivery.DUPLICATE:
                    """It is there."""
        return errors

    async def _send(self, messages: Sequence[Message], starts: Sequence[Change]) -> list[Delivery]:
        """The outcome of each message."""
        loop = asyncio.get_running_loop()
        # A RESUME has no key, and twice is as good as once.
        is_repeatable = all(it.key or it.kind is MessageKind.RESUME for it in messages) and bool(messages[0].key)
        sends, until = SENDS_MAX if is_repeatable else 1, loop.time() + self._access.store_seconds
        room = self._inbox_messages_max + (REQUESTS_MAX if messages[0].kind in _REQUESTS else 0)
        while True:
            sends -= 1
            try:
                deliver = partial(self._access.store.deliver, messages, starts=starts, inbox_messages_max=room)
                return await self._sends.send(deliver)
            except CommitUnknownError:
                # With a key it can be sent again: if it had arrived, the store says so. Not to one that is silent.
                if not sends or loop.time() >= until:
                    raise

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
