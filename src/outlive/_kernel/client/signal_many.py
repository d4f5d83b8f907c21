"""`signal_many`: many signals, to one run or to many, that are sent in one commit.

Every signal is prepared first, so that one mistake among a thousand sends nothing. Then one commit creates the runs
that some of them start, and puts all of them into their inboxes. If a run is not there, has ended or is full, only its
own signal is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Required, TypeAlias, TypedDict, get_args

from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import begun, check_starts, own_bounds
from outlive._kernel.client.birth import birth
from outlive._kernel.client.inbox import LIVES_MAX, Inbox
from outlive._kernel.client.message_key import key_of_signal
from outlive._kernel.client.start_many import BYTES_MAX, DescribedStarts, GivenStart, ManyStarts, Prepared
from outlive._kernel.client.start_options import MessageConflict
from outlive._kernel.client.turns import Turns
from outlive._kernel.journal.packing import inbox_mark
from outlive._kernel.model import Run, given, known_run_id
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Message, MessageKind
from outlive.errors import ArgumentTypeError, InvalidArgumentError, OutliveError, RunFinishedError
from outlive.errors.program import of_item
from outlive.errors.run import SignalsRefusedError

WHERE = "engine.signal_many"
SIGNALS_MAX = PAGE_SIZE_MAX
"""Signals that one call may send."""

_NO_WORKFLOW = ("", 0)
"""The workflow of a run that is not there: it declares no signals."""

SignalCall: TypeAlias = tuple[str, str] | tuple[str, str, Any]
"""A signal: the id of its run, its name, and what it carries."""


class OneSignal(TypedDict, total=False):
    """One of many signals that has options: `{"signal": ("order-7", "paid", 1200), "key": "evt_123"}`."""

    signal: Required[SignalCall]
    key: str | None
    start: tuple[Any, ...] | None
    headers: Mapping[str, str] | None
    on_conflict: MessageConflict


class GivenSignal(NamedTuple):
    """One signal as it was given."""

    run_id: str
    name: str
    payload: Any = None
    key: str | None = None
    start: tuple[Any, ...] | None = None
    headers: Mapping[str, str] | None = None
    on_conflict: MessageConflict = "attach"


def wanted_signals(signals: Iterable[SignalCall | OneSignal]) -> list[GivenSignal]:
    """The signals, checked as far as that needs no store.

    Raises:
        InvalidArgumentError: there are too many, or one cannot be sent. ArgumentTypeError: one is not a signal.
    """
    found: list[GivenSignal] = []
    for each in given.many(WHERE, "signals", signals):
        if len(found) == SIGNALS_MAX:
            wanted = f"it sends at most {SIGNALS_MAX:,} signals; call it again for the others"
            raise InvalidArgumentError(WHERE, "signals", f"more than {SIGNALS_MAX:,}", wanted)
        try:
            found.append(_wanted(each))
        except OutliveError as error:
            raise of_item(error, len(found), of="signals") from None
    return found


def _wanted(each: object) -> GivenSignal:
    own: dict[str, Any] = dict(each) if isinstance(each, Mapping) else {"signal": each}
    call = own.pop("signal", None)
    if not isinstance(call, tuple) or not 2 <= len(call) <= 3:
        wanted = (
            'give the id of the run, the name and the payload: ("order-7", "paid", 1200); with options it is '
            '{"signal": ("order-7", "paid", 1200), "key": "evt_123"}'
        )
        raise ArgumentTypeError(WHERE, "signal", call, wanted)
    for option in own.keys() - OneSignal.__annotations__.keys():
        raise ArgumentTypeError(
            WHERE, option, own[option], "a signal has the options key, start, headers and on_conflict"
        )
    run_id, name, *payload = call
    key = own.get("key")
    on_conflict: MessageConflict = own.get("on_conflict") or "attach"
    given.one_of(WHERE, "on_conflict", on_conflict, get_args(MessageConflict))
    if own.get("start") is None and on_conflict != "attach":
        wanted = "it is for the run that the signal starts, and it starts none: give start=(workflow, ...) too"
        raise InvalidArgumentError(WHERE, "on_conflict", on_conflict, wanted)
    return GivenSignal(
        known_run_id(WHERE, run_id),
        given.text(WHERE, "name", name, like="paid"),
        payload[0] if payload else None,
        None if key is None else given.text(WHERE, "key", key, like="evt_123", most=given.KEY_CHARACTERS_MAX),
        own.get("start"),
        own.get("headers"),
        on_conflict,
    )


class ManySignals:
    """Sends many signals for one client."""

    def __init__(self, access: Access, *, turns: Turns, inbox: Inbox, starts: ManyStarts) -> None:
        self._access, self._turns, self._inbox, self._starts = access, turns, inbox, starts

    async def send(self, signals: Iterable[SignalCall | OneSignal]) -> None:
        """Send these signals. See `Engine.signal_many`."""
        wanted = wanted_signals(signals)
        if not wanted:
            return
        prepared = await self._prepare_starts(wanted)
        ids = [one.run_id for one in prepared.values()]
        async with (
            self._access.admission.start(*ids),
            self._starts.through_middleware([*prepared.values()], of="signals", places=[*prepared]) as allowed,
        ):
            messages = await self._messages(wanted, {one.run_id: one for one in allowed})
            for one in allowed:
                check_starts(one.run_id, one.event.workflow, one.event.tags)
            births = [birth(one.run_id, one.event, one.blobs, one.audit) for one in allowed]
            refused = await self._inbox.deliver_many(messages, starts=births)
            for _ in range(LIVES_MAX):
                late = [at for at in refused if _may_begin_again(wanted[at], refused[at])]
                if not late:
                    break
                for at in late:
                    del refused[at]
                refused |= await self._begin_again(late, messages, {one.run_id: one for one in allowed})
        if refused:
            raise SignalsRefusedError(len(wanted), refused)

    async def _begin_again(
        self, late: list[int], messages: list[Message], starts: Mapping[str, Prepared]
    ) -> dict[int, OutliveError]:
        """Send the signals at these places, whose runs have ended, to the runs that begin for them."""
        lives = dict.fromkeys(messages[at].run_id for at in late)
        births = [await self._starts.next_life(starts[run_id]) for run_id in lives]
        refused = await self._inbox.deliver_many([messages[at] for at in late], starts=births)
        return {late[index]: error for index, error in refused.items()}

    async def _prepare_starts(self, wanted: list[GivenSignal]) -> dict[int, Prepared]:
        """The runs that the signals create if they are not there, by the place of the first signal of each."""
        found, described, ids = dict[int, Prepared](), DescribedStarts(), set[str]()
        for index, each in enumerate(wanted):
            await self._turns.take()
            try:
                if each.start is None:
                    if each.headers:
                        advice = "they are for the run that it starts: give start=(workflow, ...) too"
                        raise InvalidArgumentError(WHERE, "headers", each.headers, advice)
                    continue
                call = given.call(WHERE, "start", each.start)
                options = {"id": each.run_id, "headers": each.headers}
                one = await self._starts.prepare(GivenStart(call, options), described)
            except OutliveError as error:
                raise of_item(error, index, of="signals") from None
            if one.run_id not in ids:
                ids.add(one.run_id)
                found[index] = one
        return found

    async def _messages(self, wanted: list[GivenSignal], starts: Mapping[str, Prepared]) -> list[Message]:
        runs = await self._runs([each.run_id for each in wanted])
        messages: list[Message] = []
        size = 0
        for index, each in enumerate(wanted):
            try:
                message = await self._message(each, runs.get(each.run_id), starts.get(each.run_id))
                stored = message.payload
                size += sum(len(blob.data) for blob in message.blobs) + (len(stored.v or stored.data) if stored else 0)
                if size > BYTES_MAX:
                    most = f"the payloads of all are at most {BYTES_MAX:,} bytes together; call it several times"
                    raise InvalidArgumentError(WHERE, "payload", each.payload, most)
            except OutliveError as error:
                raise of_item(error, index, of="signals") from None
            messages.append(message)
        return messages

    async def _runs(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """The runs with these ids that the principal may know of: no error tells of the workflow of another one."""
        store, bounds = self._access.store, own_bounds()
        runs = await store.find_runs([*dict.fromkeys(run_ids)])
        if bounds.is_open:
            return runs
        roots = await store.find_runs([*{run.root_id for run in runs.values()}])
        return {it.id: it for it in runs.values() if it.root_id in roots and bounds.allow(roots[it.root_id])}

    async def _message(self, each: GivenSignal, run: Run | None, start: Prepared | None) -> Message:
        of = _NO_WORKFLOW
        if run is not None:
            of = run.workflow, run.version
        elif start is not None:
            of = start.event.workflow, start.event.version
        data = await self._inbox.encode_signal(each.run_id, each.name, each.payload, of)
        stored, blob = self._access.packer.pack(data, f"signal {each.name!r}", of=inbox_mark(each.run_id))
        deed = begun("signal", each.run_id, each.name)
        return Message(
            run_id=each.run_id,
            kind=MessageKind.SIGNAL,
            at=self._access.store.now(),
            name=each.name,
            key=key_of_signal(each.run_id, each.name, each.key),
            payload=stored,
            blobs=(blob,) if blob else (),
            audit=None if deed is None else deed.action,
        )


def _may_begin_again(signal: GivenSignal, refused: OutliveError) -> bool:
    """Whether a signal that was refused is for another run under the id."""
    return signal.on_conflict == "attach_open" and isinstance(refused, RunFinishedError)
