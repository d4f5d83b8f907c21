"""Asking a run: a message that wants an answer, and how its sender comes by it.

The key of an ask is the ask: sent again, from whatever process, it is the same one and has the same answer. So a caller
that has lost the connection, or its process, asks again. The answer lies in the store with the key, written by the
change that says it in the journal, and is never changed. What is never answered is refused by the end of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypedDict

import msgspec

from outlive._kernel.client.access import Access
from outlive._kernel.client.answers import AnswerWaiter, AnswerWaiters
from outlive._kernel.client.inbox import Inbox
from outlive._kernel.client.message_key import key_of_ask
from outlive._kernel.client.message_start import MessageStarts
from outlive._kernel.client.start_options import MessageConflict
from outlive._kernel.client.turns import Turns
from outlive._kernel.journal.failure import OWN_ERRORS, exception_of
from outlive._kernel.journal.packing import inbox_mark
from outlive._kernel.journal.value import TAGGED, Stored, ValueCodec, codec_for, encode_sent
from outlive._kernel.model import Failure, Run, RunStatus, given, known_run_id
from outlive._kernel.store.contract import Answer, Delivery, Message, MessageKind
from outlive.errors import AskFailedError, RunFinishedError, RunParkedError, StepFailedError, UnreadableError
from outlive.errors.advice import Advice
from outlive.errors.program import WorkflowNotFoundError
from outlive.errors.run import AskNotFoundError, AskRefusedError, AskTimeoutError, RunDamagedError

RUNS_ASKED_MAX = 3
"""How many runs of an id are asked that end without an answer; it may be the ask that ends them."""
AnswerWait = Callable[[asyncio.Future[Any], float | None], Awaitable[None]]


class AskId(NamedTuple):
    """The identity of an ask."""

    run_id: str
    name: str
    key: str

    @property
    def message_key(self) -> str:
        """The key of its message."""
        return key_of_ask(*self)


class AskOptions(TypedDict, total=False):
    """The options of an ask, besides its body."""

    key: str | None
    """An ask with the same key, for this run and name, is the same ask and has the same answer: from any process, also
    after a crash. Unless given, a key is made for this call."""
    start: tuple[Any, ...] | None
    """`(workflow, *args)`: create the run in the same transaction if there is none. `("name", arguments)` if its code
    is not here, as for `engine.start`."""
    headers: Mapping[str, str] | None
    """The headers of the run that it starts."""
    on_conflict: MessageConflict
    """With `attach_open` it starts a run after the end of the run that has the id, too: see `Engine.signal`."""
    timeout: given.Span | None
    """How long to wait; the ask goes on."""


class AskSender:
    """Sends asks, and waits for answers."""

    def __init__(
        self,
        access: Access,
        *,
        turns: Turns,
        inbox: Inbox,
        starts: MessageStarts,
        waiters: AnswerWaiters,
        new_id: Callable[[], str],
        wait: AnswerWait,
        why: Callable[[str], Awaitable[str]],
    ) -> None:
        self._access = access
        self._turns = turns
        self._inbox = inbox
        self._starts = starts
        self._waiters = waiters
        self._new_id = new_id
        self._wait = wait
        self._why = why

    async def _ask(
        self,
        run_id: str,
        name: str,
        body: Any = None,
        *,
        key: str | None = None,
        start: tuple[Any, ...] | None = None,
        headers: Mapping[str, str] | None = None,
        on_conflict: MessageConflict = "attach",
        timeout: given.Span | None = None,
        reply: Any = Any,
    ) -> Any:
        """Ask a run something, and wait for the answer. See `Engine.ask`."""
        where = "engine.ask"
        await self._turns.take()
        store = self._access.store
        asked = _id_of(where, run_id, name, self._new_id() if key is None else key)
        seconds = _seconds(where, timeout)
        codec = _codec_of(where, reply)
        what = f"ask {asked.name!r}"
        # A workflow has encoded what it asks where it knew the type.
        data = bytes(body) if isinstance(body, msgspec.Raw) else encode_sent(body, what)
        stored, blob = self._access.packer.pack(data, what, of=inbox_mark(asked.run_id))
        message = Message(
            run_id=asked.run_id,
            kind=MessageKind.ASK,
            at=store.now(),
            name=asked.name,
            key=asked.message_key,
            payload=stored,
            blobs=(blob,) if blob else (),
        )
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        async with self._starts.birth(where, asked.run_id, start, headers, on_conflict) as birth:
            change, again = (None, None) if birth is None else (birth.change, birth.again)
            deliver = partial(self._inbox.deliver, message, start=change, again=again)
            runs_asked = 0
            while True:
                left = seconds if until is None else max(0.0, until - loop.time())
                try:
                    return await self._ask_once(asked, deliver, left, codec)
                except AskRefusedError:
                    runs_asked += 1
                    if again is None or runs_asked == RUNS_ASKED_MAX:
                        raise
                # The run ended and did not answer: the run that lives on under its id is asked.
                deliver = partial(self._inbox.begin_again, message, again)

    async def _ask_once(
        self,
        asked: AskId,
        deliver: Callable[[], Awaitable[Delivery]],
        seconds: float | None,
        codec: ValueCodec | None,
    ) -> Any:
        """Ask the run that has the id now."""
        with self._waiters.expecting(asked.run_id, asked.message_key) as waiter:
            try:
                delivery = await deliver()
            except RunFinishedError as error:
                raise AskRefusedError(*asked, error.status) from None
            if delivery is Delivery.DUPLICATE:
                await self._waiters.seek(waiter)
            return await self._answer(asked, waiter, seconds, codec)

    async def answer(
        self, run_id: str, name: str, key: str, *, timeout: given.Span | None = None, reply: Any = Any
    ) -> Any:
        """Wait for the answer to an ask that was sent before, by any process; `AskNotFoundError` if it was not."""
        where = "engine.asks.answer"
        asked = _id_of(where, run_id, name, key)
        seconds = _seconds(where, timeout)
        codec = _codec_of(where, reply)
        await self._access.info(asked.run_id)
        with self._waiters.expecting(asked.run_id, asked.message_key) as waiter:
            await self._waiters.seek(waiter)
            return await self._answer(asked, waiter, seconds, codec)

    async def _answer(self, asked: AskId, waiter: AnswerWaiter, seconds: float | None, codec: ValueCodec | None) -> Any:
        if not waiter.future.done():
            self._waiters.sent(waiter)
            await self._wait(waiter.future, seconds)
        if not waiter.future.done():
            assert seconds is not None
            raise AskTimeoutError(*asked, seconds=seconds, why=await self._why(asked.run_id))
        found = waiter.future.result()
        if isinstance(found, Answer):
            return await self._read(asked, found, codec)
        if found is None:
            raise AskNotFoundError(*asked)
        raise _no_answer(asked, found)

    async def _read(self, asked: AskId, answer: Answer, codec: ValueCodec | None) -> Any:
        if answer.failure is not None:
            error = AskFailedError(*asked, answer.failure)
            raise error from await self._cause(asked.run_id, answer.failure)
        assert answer.result is not None
        data = await self._access.unpack(answer.result, owners=(inbox_mark(asked.run_id),))
        what = f"answer to ask {asked.name!r}"
        return _plain(data, what) if codec is None else codec.decode(data, what)

    async def _cause(self, run_id: str, failure: Failure) -> BaseException:
        """The exception again: its own class where the workflow of the run registers it."""
        run = await self._access.store.find_run(run_id)
        try:
            spec = None if run is None else self._access.registry.workflow(run.workflow, run.version)
        except WorkflowNotFoundError:
            spec = None
        registered = () if spec is None else spec.registered
        return exception_of(failure, registered=(*registered, *OWN_ERRORS, StepFailedError, UnreadableError))


def _id_of(where: str, run_id: str, name: str, key: str) -> AskId:
    return AskId(
        known_run_id(where, run_id),
        given.label(where, name, like="add"),
        given.text(where, "key", key, like="evt_123", most=given.KEY_CHARACTERS_MAX),
    )


def _seconds(where: str, timeout: given.Span | None) -> float | None:
    return None if timeout is None else given.seconds(where, "timeout", timeout, or_zero=True)


def _codec_of(where: str, reply: Any) -> ValueCodec | None:
    return None if reply is Any else codec_for(given.kind(where, "reply", reply))


def _plain(data: Stored, what: str) -> Any:
    try:
        return TAGGED.decode(data, what)
    except UnreadableError:
        return msgspec.json.decode(data)  # Its type has forms of its own for values that TAGGED marks.


def _no_answer(asked: AskId, run: Run) -> Exception:
    """Why there is no answer: the run has ended, or stopped until a person lets it go on."""
    if run.status.is_terminal:
        return AskRefusedError(*asked, run.status.value)
    error = (RunDamagedError if run.status is RunStatus.DAMAGED else RunParkedError)(asked.run_id, run.reason)
    effect = "waits for the answer to the ask, which goes on with the run"
    return error.advising(*error.advice, Advice("asks.answer", asked._asdict(), effect))
