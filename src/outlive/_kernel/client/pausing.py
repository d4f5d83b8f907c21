"""Pausing: a run, a workflow or everything begins nothing more until a person lets it go on.

A run without an owner is parked at once, by compare-and-swap. The owner of one that moves gets a message, lets the
steps that run end, and parks it. What is paused as a whole is written in a cell: workers leave such runs alone, and
release runs that they have when their steps have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import doing
from outlive._kernel.client.inbox import Inbox
from outlive._kernel.client.retrying import in_callback
from outlive._kernel.client.starting import read_tree
from outlive._kernel.client.why import is_paused
from outlive._kernel.journal.codec import salt_of, seal
from outlive._kernel.journal.event import RunParked
from outlive._kernel.journal.failure import storable
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Run, RunStatus, given
from outlive._kernel.model.pause import EVERYTHING, PAUSES_CELL, Pause, Pauses, paused_text, pauses_data, pauses_in
from outlive._kernel.store.contract import CellChange, Change, InboxMessage, Message, MessageKind, Outcome
from outlive.errors import InvalidArgumentError, RunFinishedError, RunParkedError, StoreUnavailableError
from outlive.errors.run import RunDamagedError, RunNotParkedError


class Pauser:
    """Pauses and resumes."""

    def __init__(self, access: Access, *, inbox: Inbox, announce: Callable[[Run], None]) -> None:
        self._access = access
        self._inbox = inbox
        self._announce = announce

    async def pause_run(self, run_id: str, *, by: str, reason: str) -> None:
        """Pause one run, with its tree. See `Engine.pause`."""
        with doing("pause", run_id, reason):
            await self._pause_run(run_id, by=by, reason=reason)

    async def _pause_run(self, run_id: str, *, by: str, reason: str) -> None:
        root = await self._access.root_of(await self._access.info(run_id))
        if root.status.is_terminal:
            raise RunFinishedError(root.id, root.status.value)
        if root.status is RunStatus.DAMAGED:
            raise RunDamagedError(root.id, root.reason)
        if root.status is RunStatus.PARKED and not await self._is_to_go_on(root):
            if is_paused(root):
                return
            raise RunParkedError(root.id, root.reason)
        text = storable(paused_text(by, reason))
        if not root.owner and await self._park(root, text):
            return
        at = self._access.store.now()
        await self._inbox.deliver(Message(run_id=root.id, kind=MessageKind.PAUSE, at=at, name=text))

    async def _park(self, root: Run, text: str) -> bool:
        """Park a run that no worker has; False if one has it all the same."""
        store = self._access.store
        rows, tree = await read_tree(store, root)
        now = tree.get(0)
        if now is None or now.owner or now.status in (RunStatus.PARKED, RunStatus.DAMAGED) or now.status.is_terminal:
            return False
        fold = Fold(root.id)
        fold.runs = dict(tree)
        event = RunParked(at=store.now(), reason=text)
        parked = fold.apply(event)
        assert parked is not None
        seq = rows[-1][0] + 1
        row = seal(event, salt=salt_of(root.nonce), seq=seq)
        change = Change(journal=root.journal, after=seq - 1, prior=rows[-1][2], rows=[row], runs=[parked])
        if (await store.commit([change]))[0][0] is Outcome.CONFLICT:
            return False
        self._announce(parked)
        return True

    async def resume_run(self, run_id: str) -> None:
        """Let a run go on that is parked, or about to be. See `Engine.resume`."""
        store = self._access.store
        root = await self._access.root_of(await self._access.info(run_id))
        while root.status is not RunStatus.PARKED and not await self.pause_ahead(root):
            # Its owner may have parked it after the first look, or gone on as the next generation, which has the inbox
            # now: the request to pause was in neither place.
            journal, root = root.journal, await self._access.info(root.id)
            if root.status is not RunStatus.PARKED and root.journal == journal:
                raise RunNotParkedError(root.id, root.status.value)
        await self._inbox.deliver(Message(run_id=root.id, kind=MessageKind.RESUME, at=store.now()))

    async def pause_ahead(self, root: Run) -> str:
        """Why a run that moves is about to be paused; empty if it is not."""
        return next((message.name for message in await self._newest(root) if message.kind is MessageKind.PAUSE), "")

    async def _is_to_go_on(self, root: Run) -> bool:
        """Whether a person has resumed a parked run, no worker has heard of it yet, and nothing has paused it since."""
        kinds = (it.kind for it in await self._newest(root) if it.kind in (MessageKind.PAUSE, MessageKind.RESUME))
        return next(kinds, None) is MessageKind.RESUME

    async def _newest(self, root: Run) -> Iterable[InboxMessage]:
        return reversed((await self._access.store.read_inbox([root.journal])).get(root.journal, []))

    # -- Workflows -------------------------------------------------------------------------------------------

    async def pauses(self) -> Pauses:
        """The workflows that are paused, by name, and `*` for all of them."""
        return pauses_in(await self._access.store.read_cell(PAUSES_CELL))

    async def pause_workflow(self, workflow: str, *, by: str, reason: str) -> None:
        """Pause all runs of a workflow, later ones too."""

        def change(data: bytes | None, now_at: int) -> tuple[bytes, None]:
            pauses = pauses_in(data)
            pauses.setdefault(workflow, Pause(now_at, by, reason))
            return pauses_data(pauses), None

        with doing("pause", workflow, reason):
            await self._change(change)

    async def resume_workflow(self, workflow: str) -> None:
        """Let the runs of a workflow go on that were paused with it."""

        def change(data: bytes | None, now_at: int) -> tuple[bytes, None]:
            del now_at
            return pauses_data({name: pause for name, pause in pauses_in(data).items() if name != workflow}), None

        with doing("resume", workflow):
            await self._change(change)

    async def _change(self, change: CellChange[None]) -> None:
        store = self._access.store
        await store.change_cell(PAUSES_CELL, change)
        with suppress(StoreUnavailableError):  # It is paused: the others will look for that by themselves.
            await store.ring(PAUSES_CELL)
        worker = self._access.worker
        if worker is not None:
            # In this process at once: the next start must not begin what is paused.
            pauses = await self.pauses()
            await in_callback(lambda: worker.set_pauses(pauses))
        self._access.ring()


def wanted_workflow(where: str, run_id: str | None, workflow: str | None, *, everything: bool) -> str | None:
    """The name under which a pause of a workflow, or of everything, is kept; None if one run is meant."""
    given.flag(where, "all", everything)
    if (run_id is not None) + (workflow is not None) + everything != 1:
        wanted = "give the id of a run, the name of a workflow, or all: exactly one"
        raise InvalidArgumentError(where, "run_id", run_id, wanted)
    if workflow is None:
        return EVERYTHING if everything else None
    return given.text(where, "workflow", workflow, like="order")
