"""The acting principal: everything that is written while a person or a key acts is in the audit log, in the same
transaction.

`engine.audit.acting` says who it is. As long as that lasts, `Access.store` is an `AuditedStore`: whatever verb of a
client writes, it says what it did. So no verb can forget to, and a new verb need not think of it. `doing` gives what is
written in it the name of the verb that the caller used: a run that is cancelled may be ended, sent a message, and
resumed, and that is one action.

A principal may be one of some workflows, or of runs with some tags only (`Bounds`). The server that lets it in looks at
what the run is; but by the time something is written, another run may have taken the id. So what is written says what
bounds it has, and the store looks again, in the same transaction. Runs that such a principal starts have its tags.

Code in which no principal acts is not audited, and does nothing of this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from outlive._kernel.model import Run, given
from outlive._kernel.model.bounds import UNBOUND, Bounds, bounds_of
from outlive._kernel.model.cells import cells_of
from outlive._kernel.model.giver import GIVER, Giver
from outlive._kernel.model.run import is_internal
from outlive._kernel.store.audit import Action
from outlive._kernel.store.contract import CellChange, Change, Delivery, Message, Outcome, Store
from outlive._kernel.store.schedules import ScheduleChange
from outlive._tasks import own_task
from outlive.errors import InvalidArgumentError, RunNotFoundError
from outlive.errors.key import QueueRefusedError

T = TypeVar("T")
ACTOR_CHARACTERS_MAX = 200


class Deed:
    """One action, and whether it is in the log."""

    __slots__ = ("_action", "_giver", "is_written")

    def __init__(self, action: Action, giver: Giver) -> None:
        self._action = action
        self._giver = giver
        self.is_written = False

    @property
    def action(self) -> Action:
        """The entry for the audit log, also with arguments that were taken since this began."""
        if said := self._giver.take():
            self._action = replace(self._action, reason="; ".join(filter(None, (self._action.reason, *said))))
        return self._action


class Acting:
    """The acting principal of a context, with the runs that it may know and the verb under way."""

    __slots__ = ("_actor", "bounds", "deed", "giver")

    def __init__(self, actor: Action, bounds: Bounds, giver: Giver, deed: Deed | None = None) -> None:
        self._actor = actor
        self.bounds = bounds
        self.giver = giver
        self.deed = deed

    @property
    def name(self) -> str:
        """The name of the principal."""
        return self._actor.actor

    def action(self, verb: str, target: str, reason: str = "", *, is_denied: bool = False) -> Action:
        """Something that this one does."""
        return replace(self._actor, verb=verb, target=target, reason=reason, is_denied=is_denied)

    def within(self, verb: str, target: str, reason: str) -> Acting:
        """This principal, while it does something."""
        deed = Deed(self.action(verb, target, reason), self.giver)
        return Acting(self._actor, self.bounds, self.giver, deed)

    def begin(self, verb: str, target: str, reason: str = "") -> Deed | None:
        """The deed that is to be written with the next write; None if it is in the log already."""
        if self.deed is not None:
            return None if self.deed.is_written else self.deed
        return Deed(self.action(verb, target, reason), self.giver)


ACTING: ContextVar[Acting | None] = ContextVar("outlive-acting", default=None)


class GatheringCommits:
    """Commits changes of different runs that come at about the same time in one transaction: while one is under way,
    the next ones gather."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[tuple[Change, asyncio.Future[tuple[Outcome, int]]]] = []
        self._task: asyncio.Task[None] | None = None

    async def commit(self, change: Change) -> tuple[Outcome, int]:
        """See `Store.commit`."""
        future: asyncio.Future[tuple[Outcome, int]] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, future))
        if self._task is None:
            self._task = own_task(self._run(), name="outlive-bulk-commits")
        return await future

    async def _run(self) -> None:
        while self._waiting:
            several, self._waiting = self._waiting, []
            answers: Sequence[tuple[Outcome, int] | BaseException]
            try:
                answers = await self._store.commit([change for change, _ in several])
            except Exception as error:  # Each caller has to know.
                answers = [error] * len(several)
            for (_, future), answer in zip(several, answers, strict=True):
                if future.done():
                    continue
                if isinstance(answer, BaseException):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        self._task = None


TOGETHER: ContextVar[GatheringCommits | None] = ContextVar("outlive-together", default=None)
"""The committer of changes of single runs, while one verb is done to many."""


@contextmanager
def acting(
    actor: str,
    *,
    key: str = "",
    via: str = "code",
    address: str = "",
    request: str = "",
    workflows: Collection[str] | None = None,
    tags: Mapping[str, str] | None = None,
    overrides: Literal["all", "policies"] = "all",
) -> Iterator[None]:
    """Say who acts: what the verbs of engines write in this block is in the audit log, under this name.

        with engine.audit.acting("ann"):
            await engine.cancel("order-42", reason="sold out")

    Args:
        actor: the name of a person, or of a program.
        key: the id of the API key that was used.
        via: the way in.
        address: where the request came from.
        request: what names the request; the audit log finds by it whether it was done.
        workflows: the only ones whose runs can be sent something or changed; a run of another one is not there. Given
            so that a run which takes an id at the last moment is safe too. Runs are started in the queue that their
            workflow declares, and in no other. It does not limit what is read, or which workflows are started.
        tags: the same for runs with all of these tags, and every run that is started has them.
        overrides: what may be changed of a flow for the runs that are started: everything, or what its document lets a
            start change, which is retries, timeouts and limits unless it says otherwise.
    """
    name = given.text("engine.audit.acting", "actor", actor, like="ann", most=ACTOR_CHARACTERS_MAX)
    who = Action(actor=name, verb="", key=key, via=via, address=address, request=request)
    giver = Giver(is_free=given.one_of("engine.audit.acting", "overrides", overrides, ("all", "policies")) == "all")
    bounds = bounds_of(workflows, given.tags("engine.audit.acting", tags))
    token = ACTING.set(Acting(who, bounds, giver))
    giving = GIVER.set(giver)
    try:
        yield
    finally:
        GIVER.reset(giving)
        ACTING.reset(token)


@contextmanager
def doing(verb: str, target: str, reason: str = "") -> Iterator[None]:
    """Name the writes of this block as one action; within another action, the outer one counts."""
    found = ACTING.get()
    if found is None or found.deed is not None:
        yield
        return
    token = ACTING.set(found.within(verb, target, reason))
    try:
        yield
    finally:
        ACTING.reset(token)


def begun(verb: str, target: str, reason: str = "") -> Deed | None:
    """The entry for the next write; None if no principal acts, or the entry was written."""
    found = ACTING.get()
    return None if found is None else found.begin(verb, target, reason)


def purges(runs: Sequence[Run]) -> Mapping[int, Action] | None:
    """The entries for deleted trees, by their journals; None if no principal acts."""
    for run in runs:
        check_acts_on(run)
    found = ACTING.get()
    return None if found is None else {run.journal: found.action("purge", run.id) for run in runs}


@contextmanager
def by_the_engine() -> Iterator[None]:
    """Treat the writes of this block as the engine's own, whichever principal acts."""
    token = ACTING.set(None)
    try:
        yield
    finally:
        ACTING.reset(token)


class AuditedStore:
    """A store, used by a principal: what is written to it is in the audit log."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`. The last change is what the caller wants; those before it make room for it, or are runs that an
        event starts too: then each of them is an action."""
        _check_bounds(changes)
        *before, last = changes
        deed = begun(*_named(last))
        if deed is None:
            return await self._inner.commit(changes)
        also = [each if each.journal else replace(each, audit=_started(each, deed.action)) for each in before]
        audited, together = replace(last, audit=[deed.action]), TOGETHER.get()
        if together is not None and not also:
            outcomes = [await together.commit(audited)]
        else:
            outcomes = await self._inner.commit([*also, audited])
        deed.is_written = outcomes[-1][0] is Outcome.COMMITTED
        return outcomes

    async def deliver(
        self, messages: Sequence[Message], *, starts: Sequence[Change] = (), inbox_messages_max: int
    ) -> list[Delivery]:
        """See `Store`. The first message is what the caller wants, unless each of them has an entry for the log."""
        first, *rest = [replace(each, bounds=own_bounds()) for each in messages]
        _check_bounds(starts)
        deed = None if first.audit is not None else begun(first.kind.value, first.run_id, first.name)
        if deed is not None:
            first = replace(first, audit=deed.action)
        deliveries = await self._inner.deliver([first, *rest], starts=starts, inbox_messages_max=inbox_messages_max)
        if deed is not None:
            deed.is_written = deliveries[0] is Delivery.ACCEPTED
        return deliveries

    async def change_schedules(self, changes: Sequence[ScheduleChange]) -> list[Outcome]:
        """See `ScheduleTable`."""
        deeds = [begun(_verb_of(change), change.name) for change in changes]
        audited = [
            change if deed is None else replace(change, audit=deed.action)
            for change, deed in zip(changes, deeds, strict=True)
        ]
        outcomes = await self._inner.change_schedules(audited)
        for deed, outcome in zip(deeds, outcomes, strict=True):
            if deed is not None:
                deed.is_written = outcome is Outcome.COMMITTED
        return outcomes

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        """See `CellStore`."""
        named = _cell_named(name)
        if named is None or audit is not None:
            return await self._inner.change_cell(name, change, audit=audit)
        deed = begun(*named)
        if deed is None:
            return await self._inner.change_cell(name, change)
        changed: list[bool] = []

        def note(held: bytes | None, now_at: int) -> tuple[bytes | None, T]:
            after, answer = change(held, now_at)
            changed[:] = [after != held]
            return after, answer

        answer = await self._inner.change_cell(name, note, audit=deed.action)
        deed.is_written = changed == [True]
        return answer


def own_bounds() -> Bounds:
    """Which runs the principal may know of that acts."""
    found = ACTING.get()
    return UNBOUND if found is None else found.bounds


def own_tags(where: str, workflow: str, wanted: Mapping[str, str] | None) -> dict[str, str]:
    """The tags of a run that is started: its own, and the tags that all runs of the principal have. Runs
    that the engine makes for itself have none.

    Raises:
        InvalidArgumentError: the principal may start no runs with another value.
    """
    plain = given.tags(where, wanted)
    return plain if is_internal(workflow) else with_tags(where, "tags", plain, own_bounds().tags)


def with_tags(where: str, what: str, plain: dict[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The tags that a principal gives to a run, with the tags that all of its runs have.

    Raises:
        InvalidArgumentError: it gives another value for one of these.
    """
    if any(plain.get(name, value) != value for name, value in own.items()):
        shown = ", ".join(f"{name}={value}" for name, value in own.items())
        raise InvalidArgumentError(where, what, plain, f"every run that you start has {shown}; leave that out")
    return {**plain, **own}


def check_acts_on(root: Run) -> None:
    """See that the principal may act on the runs of a tree.

    Raises:
        RunNotFoundError: it may not, and so the run is not there.
    """
    if not own_bounds().allow(root):
        raise RunNotFoundError(root.id)


def check_uses(queue: str, own: str) -> None:
    """See that the principal may start a run in a queue; `own` is the queue that the workflow of the run declares. Both
    are empty for runs without a queue.

    Raises:
        QueueRefusedError: it is bound to some runs only, and this is the queue of others.
    """
    if queue != own and not own_bounds().is_open:
        raise QueueRefusedError(queue, own)


def check_starts(run_id: str, workflow: str, tags: Mapping[str, str]) -> None:
    """See that the principal may start a tree: one that it may know of. Whatever starts it has added the tags that all
    runs of the principal have.

    Raises:
        RunNotFoundError: it has not.
    """
    if not own_bounds().fit_tags(tags) and not is_internal(workflow):
        raise RunNotFoundError(run_id)


def _check_bounds(changes: Sequence[Change]) -> None:
    """See that the principal may act on runs which are there, and are changed, and that new ones have its tags."""
    bounds = own_bounds()
    if bounds.is_open:
        return
    for change in changes:
        for run in change.runs:
            if run.number:
                continue
            if change.journal:
                check_acts_on(run)
            else:
                check_starts(run.id, run.workflow, run.tags)


def _started(change: Change, action: Action) -> list[Action]:
    """The action, as the start of another run."""
    verb, run_id = _named(change)
    return [replace(action, verb=verb, target=run_id)]


def _named(change: Change) -> tuple[str, str]:
    """The verb of a change, and the id of its run."""
    root = next((run for run in change.runs if run.number == 0), None)
    run_id = "" if root is None else root.id
    if not change.journal:
        return "start", run_id
    return "retry" if change.reopens else "change", run_id


def _verb_of(change: ScheduleChange) -> str:
    if change.data is None:
        return "schedule.delete"
    if not change.revision:
        return "schedule.create"
    return "schedule.trigger" if change.starts else "schedule.change"


def _cell_named(name: str) -> tuple[str, str] | None:
    """The verb for a change of this cell, and its target; None for a cell that people do not change."""
    cells = cells_of(name)
    return (cells.verb, name.removeprefix(cells.name)) if cells is not None and cells.verb else None
