"""Changing an open run from outside: its tags and its deadline at any time, and where and when it begins before that.

A run that no worker has begun has a journal of one event. Another first event takes its place, as after a debounced
start, so a worker that claims the run meanwhile wins. Later the change is an event of its own: a client writes it for a
run that no worker has, and the owner of a run gets it as a message, because an owner alone writes the journal of its
run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypedDict

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import doing, own_bounds
from outlive._kernel.client.birth import rebirth
from outlive._kernel.client.closing import is_unbegun
from outlive._kernel.client.inbox import Inbox
from outlive._kernel.client.placing import QueueChoice, beginning_at, queue_choice
from outlive._kernel.client.starting import Starter, read_tree
from outlive._kernel.journal.change import WantedChange, changed_by
from outlive._kernel.journal.codec import creation_in, salt_of, seal
from outlive._kernel.journal.event import RunCreated
from outlive._kernel.journal.failure import storable
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Run, RunStatus, given
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.queue import Queue
from outlive._kernel.store.contract import Change, Message, MessageKind, Outcome
from outlive.errors import InvalidArgumentError, OutliveError, RunFinishedError
from outlive.errors.run import RunDamagedError, RunNotChangeableError

WHERE = "engine.change"
TRIES_MAX = 20
"""How often a change is tried again because something else was written first."""
HAS_BEGUN = "it has begun, so its queue and its start are settled; its tags and its timeout can be changed"
INHERITS = "it has signals of the run before it and has not begun: until then only its tags can be changed"


class ChangeOptions(TypedDict, total=False):
    """The facts about an open run that can be changed."""

    tags: Mapping[str, str | None] | None
    """Tags beside its own; None removes one."""
    timeout: given.Span | UnsetType | None
    """How long it may take: from now on, or from its beginning if no worker has begun it; None for as long as it
    likes."""
    queue: Queue | str | None
    """Another queue; `"default"` for none. Only of a run that no worker has begun, as the next four."""
    key: str | None
    priority: int | None
    delay: given.Span | None
    """How long from now it is to begin."""
    start_at: datetime | None
    """The instant instead."""


class Changer:
    """Changes open runs."""

    def __init__(self, access: Access, *, starter: Starter, inbox: Inbox, announce: Callable[[Run], None]) -> None:
        self._access, self._starter = access, starter
        self._inbox, self._announce = inbox, announce

    async def change(
        self,
        run_id: str,
        *,
        tags: Mapping[str, str | None] | None = None,
        timeout: given.Span | UnsetType | None = UNSET,
        reason: str = "",
        **place: Any,
    ) -> None:
        """Change an open run. See `Engine.change`."""
        choice = queue_choice(**place)
        seconds = timeout if timeout is UNSET else given.some_seconds(WHERE, "timeout", timeout)
        span = seconds if not isinstance(seconds, float) else round(seconds * MICROSECONDS)
        said = storable(given.text(WHERE, "reason", reason, like="too slow", least=0, most=given.TEXT_CHARACTERS_MAX))
        wanted = WantedChange(tags=_tags(tags), timeout=span, reason=said)
        if not wanted.tags and timeout is UNSET and choice is None:
            say = "say what to change: tags, timeout, queue, key, priority, delay or start_at"
            raise InvalidArgumentError(WHERE, "tags", tags, say, example={"stage": "held"})
        with doing("change", run_id, reason):
            for _ in range(TRIES_MAX):
                if await self._change(run_id, wanted, choice):
                    return
        raise OutliveError(f"run {run_id} could not be changed: something else was written first {TRIES_MAX} times")

    async def _change(self, run_id: str, wanted: WantedChange, choice: QueueChoice | None) -> bool:
        """False if something else was written first."""
        run = await self._access.info(run_id)
        root = await self._access.root_of(run)
        for each in (run, root):
            if each.status.is_terminal:
                raise RunFinishedError(each.id, each.status.value)
        if root.status is RunStatus.DAMAGED:
            raise RunDamagedError(root.id, root.reason)
        if not run.number and not own_bounds().fit_tags(wanted.tags_of(root)):
            raise RunNotChangeableError(run.id, "a key for some runs only cannot change the tags that it has them by")
        if is_unbegun(root) and not run.number:
            rows = await self._access.store.read_journal(root.journal, limit=2)
            if len(rows) == 1:
                return await self._rewrite(root, rows[0], wanted, choice)
            if not is_unbegun(await self._access.info(root.id)):
                return False
            if choice is not None or wanted.timeout is not UNSET:
                raise RunNotChangeableError(run.id, INHERITS)
        if choice is not None:
            raise RunNotChangeableError(run.id, HAS_BEGUN)
        if wanted.timeout is not UNSET and run.number:
            raise RunNotChangeableError(run.id, f"it is a child run; change the timeout of its root, {root.id}")
        if wanted.timeout is not UNSET and not root.epoch:
            raise RunNotChangeableError(run.id, "it was stopped before a worker began it; resume it first")
        if not root.owner:
            return await self._append(root, run.number, wanted)
        at = self._access.store.now()
        said = msgspec.json.encode(wanted).decode()
        await self._inbox.deliver(Message(run_id=run.id, kind=MessageKind.CHANGE, at=at, name=said))
        return True

    async def _append(self, root: Run, number: int, wanted: WantedChange) -> bool:
        """Write the event of a change of a run that no worker has."""
        store = self._access.store
        rows, tree = await read_tree(store, root)
        now = tree.get(0)
        if now is None or number not in tree or now.owner or now.status.is_terminal:
            return False
        fold = Fold(root.id)
        fold.runs = dict(tree)
        event = changed_by(wanted, tree[number], at=store.now())
        changed = fold.apply(event)
        assert changed is not None
        seq = rows[-1][0] + 1
        change = Change(
            journal=root.journal,
            after=seq - 1,
            prior=rows[-1][2],
            rows=[seal(event, salt=salt_of(root.nonce), seq=seq)],
            runs=[changed],
            retagged=[number] if wanted.tags else [],
        )
        if (await store.commit([change]))[0][0] is not Outcome.COMMITTED:
            return False
        self._announce(changed)
        self._access.ring()
        return True

    async def _rewrite(self, root: Run, first: Any, wanted: WantedChange, choice: QueueChoice | None) -> bool:
        """Put another first event in the place of the one of a run that has not begun."""
        store = self._access.store
        created = creation_in(first, nonce=root.nonce, run_id=root.id)
        event = created if choice is None else await self._placed(created, choice, now_at=store.now())
        if wanted.tags:
            event = replace(event, tags=wanted.tags_of(root))
        if wanted.timeout is not UNSET:
            due_at, span = event.start_at or event.at, wanted.timeout
            event = replace(event, timeout=span, timeout_at=None if span is None else due_at + span)
        if event == created:
            return True
        change = rebirth(root, event, [], first=first)
        change.retagged = [0] if event.tags != created.tags else []
        change.requeued = _line_of(event) != _line_of(created)
        if (await store.commit([change]))[0][0] is not Outcome.COMMITTED:
            return False
        self._access.ring()
        return True

    async def _placed(self, event: RunCreated, choice: QueueChoice, *, now_at: int) -> RunCreated:
        """The first event with the place that is chosen; what the choice does not say stays as it is."""
        place = await self._starter.place(WHERE, choice, event.queue or None)
        if place.queue not in {"", event.queue} and event.slots > 1:
            await self._starter.place(WHERE, replace(choice, slots=event.slots), None)  # Raises if it has fewer.
        if choice.delay is not None or choice.start_at is not None:
            event = beginning_at(event, place.start_at or now_at)
        if choice.queue is not None or choice.key is not None or choice.priority is not None:
            is_other = place.queue != event.queue
            event = replace(
                event,
                queue=place.queue,
                queue_key=place.queue_key if is_other or choice.key is not None else event.queue_key,
                lead=place.lead if is_other or choice.priority is not None else event.lead,
                frees_slot=place.frees_slot,
            )
        return event


def _line_of(event: RunCreated) -> tuple[str, str, int]:
    return event.queue, event.queue_key, event.lead


def _tags(tags: object) -> dict[str, str | None]:
    if tags is None:
        return {}
    if not isinstance(tags, Mapping):
        given.tags(WHERE, tags)  # Raises, and says what a tag is.
    assert isinstance(tags, Mapping)
    removed = given.tags(WHERE, {name: "" for name, value in tags.items() if value is None})
    return {**dict.fromkeys(removed), **given.tags(WHERE, {name: it for name, it in tags.items() if it is not None})}
