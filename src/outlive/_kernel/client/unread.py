"""`engine.inbox`: the messages that a run has not read. No worker has taken them out of its inbox yet, or its code has
not asked for them since."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from outlive._kernel.client.access import Access
from outlive._kernel.client.dead_letters import value_of
from outlive._kernel.client.message_key import sender_key
from outlive._kernel.journal.event import (
    UNREAD_MAX,
    AnyEvent,
    AskAnswered,
    AskReceived,
    RunSuspended,
    SignalReceived,
    SnapshotTaken,
)
from outlive._kernel.model import Payload, Run, RunStatus, child_id, given
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.promise import PROMISE
from outlive._kernel.store.contract import InboxMessage, MessageKind
from outlive._kernel.values.inbox import MessageKindShown, UnreadMessage

_LOOKS_MAX = 3
"""How often the inbox is read again if a worker takes messages out of it meanwhile."""
_VALUED = (MessageKind.SIGNAL, MessageKind.ASK)
"""Messages whose content is that of a program."""


class Unread(NamedTuple):
    """A message that was not read, before its content is."""

    run: int
    kind: MessageKindShown
    name: str
    key: str
    at: int
    state: str
    payload: Payload | None


class Look(NamedTuple):
    """The inbox and the journal of a tree, read one after the other."""

    inbox: Sequence[InboxMessage]
    events: Sequence[AnyEvent]
    is_suspended: bool
    is_whole: bool
    """Whether no worker took a message out of the inbox meanwhile: it may be in neither of the two."""


class RunInbox:
    """Messages that a run has not read."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(self, run_id: str, *, limit: int = 100) -> builtins.list[UnreadMessage]:
        """Messages to a run and its children that their code has not read, oldest first: what lies in the inbox, and
        signals and asks that came before the code asked for them.

        While a worker has the run, it does not say what the code reads: such messages have the state `taken`.

        Args:
            limit: at most so many, up to 200.
        """
        most = given.whole("engine.inbox.list", "limit", limit, most=UNREAD_MAX)
        return [each async for each in read_unread(self._access, run_id, limit=most)]


async def read_unread(
    access: Access, run_id: str, *, limit: int, bytes_max: int | None = None
) -> AsyncIterator[UnreadMessage]:
    """The messages that a run and its children have not read, one by one.

    With `bytes_max` their values have no more than that together. `{"[large]": bytes}` stands in the place of others.
    """
    run = await access.info(run_id)
    left = bytes_max
    for each in islice(await _unread(access, run), limit):
        value, size = await value_of(access, each.payload)
        if left is not None and size > left:
            value = {"[large]": size}
        elif left is not None:
            left -= size
        yield UnreadMessage(
            run_id=child_id(run.root_id, each.run),
            kind=each.kind,
            name=each.name,
            key=each.key,
            at=instant_of(each.at),
            state=each.state,  # type: ignore[arg-type]
            value=value,
        )


async def _unread(access: Access, run: Run) -> Iterator[Unread]:
    """The messages to the run, or to its whole tree if it is a root. Messages in the journal are older than the others,
    and so they are first."""
    look = await _look(access, run)
    for _ in range(_LOOKS_MAX):
        if look.is_whole:
            break
        look = await _look(access, run)
    found = [*_in_journal(look.events, is_suspended=look.is_suspended), *map(_of_inbox, look.inbox)]
    return (each for each in found if run.number in (0, each.run))


async def _look(access: Access, run: Run) -> Look:
    inbox = await _inbox(access, run)
    root, events = await access.root_of(run), await access.events(run)
    now = await _inbox(access, run)
    return Look(
        inbox=inbox,
        events=events,
        is_suspended=root.status is RunStatus.WAITING,
        is_whole=[each.id for each in inbox] == [each.id for each in now],
    )


async def _inbox(access: Access, run: Run) -> Sequence[InboxMessage]:
    return (await access.store.read_inbox([run.journal])).get(run.journal, ())


def _of_inbox(message: InboxMessage) -> Unread:
    key = sender_key(message.key, message.name) if message.kind in _VALUED else ""
    name = message.name if message.kind in (*_VALUED, MessageKind.DECISION, MessageKind.SKIP) else ""
    kind = message.kind.value
    if message.ended is not None:
        kind, name = "end", message.ended.run_id
    payload = message.payload if message.kind in _VALUED else None
    return _said(message.run, kind, name, key, message.at, "inbox", payload)


def _in_journal(events: Iterable[AnyEvent], *, is_suspended: bool) -> Iterator[Unread]:
    """The signals that the code had not asked for when the run was last suspended, the signals that came since, and the
    asks without an answer."""
    signals: dict[str, SignalReceived] = {}
    asks: dict[tuple[int, str, str, int], AskReceived] = {}
    seq = 0
    for event in events:
        match event:
            case SnapshotTaken():
                seq = event.events
                signals = {f"{seq}.{number}": signal for number, signal in enumerate(event.signals)}
                asks = {_place_of(ask): ask for ask in event.asks}
            case SignalReceived():
                signals[str(seq)] = event
            case RunSuspended():
                signals = {place: signals[place] for place in event.unread if place in signals}
            case AskReceived():
                asks[_place_of(event)] = event
            case AskAnswered():
                asks.pop(_place_of(event), None)
            case _:
                pass
        seq += 1
    state = "buffered" if is_suspended else "taken"
    unread: list[SignalReceived | AskReceived] = [*signals.values(), *asks.values()]
    for found in sorted(unread, key=lambda it: it.at):
        kind = "ask" if isinstance(found, AskReceived) else "signal"
        yield _said(found.run, kind, found.name, found.key, found.at, state, found.payload)


def _place_of(event: AskReceived | AskAnswered) -> tuple[int, str, str, int]:
    return event.run, event.name, event.key, event.forks


def _said(run: int, kind: Any, name: str, key: str, at: int, state: str, payload: Payload | None) -> Unread:
    if kind == "signal" and name.startswith(f"{PROMISE}/"):
        kind, name, key, payload = "promise", name.removeprefix(f"{PROMISE}/"), "", None
    return Unread(run, kind, name, key, at, state, payload)
