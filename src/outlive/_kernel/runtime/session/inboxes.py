"""Messages for trees in motion: they become events, or hold the tree, because a person has paused it.

See `outlive._kernel.runtime.tree.holding` for what becomes of a tree that is held.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from outlive._kernel.model.pause import Pauses, pause_of
from outlive._kernel.runtime.session.requests import ClaimerRequests
from outlive._kernel.runtime.steps.executor import Executor
from outlive._kernel.runtime.tree.holding import TreeHold, pause_in
from outlive._kernel.runtime.tree.live import EVENTS_AT_ONCE, LiveTree
from outlive._kernel.runtime.tree.phase import TreePhase
from outlive._kernel.runtime.tree.trees import LiveTrees
from outlive._kernel.store.contract import InboxMessage, MessageKind
from outlive.telemetry import Counters


class Mover(Protocol):
    """The worker, as the part that moves trees."""

    def guarding(self, live: LiveTree) -> AbstractContextManager[None]:
        """Park a tree if the code inside raises."""

    def settle(self, live: LiveTree) -> None:
        """Decide what a tree that has just moved does next."""

    def start_durable(self, live: LiveTree) -> None:
        """Begin what a replay left to do, if nothing has happened since."""


class TreeInboxes:
    """Gives messages to the trees of a worker."""

    def __init__(
        self, mover: Mover, *, trees: LiveTrees, executor: Executor, requests: ClaimerRequests, counters: Counters
    ) -> None:
        self._mover = mover
        self._trees = trees
        self._executor = executor
        self._requests = requests
        self._counters = counters
        self._loop = asyncio.get_running_loop()
        self.pauses: Pauses = {}
        """The workflows that are paused, as last read."""

    def take(self, live: LiveTree, inbox: list[InboxMessage]) -> None:
        """Turn messages into events; no more are read for this tree until these are durable."""
        if not inbox or live.phase is not TreePhase.MOVING:
            return
        hold = pause_in(inbox)
        if hold is not None or live.hold is not None:
            # All messages stay in the inbox. What would let the tree go on lets another claim do so.
            self.hold(live, hold or TreeHold())
            # A claim may find messages and a pause: what its replay left to do does not begin, and must not be written.
            self._mover.start_durable(live)
            return
        self._trees.inbox_taken(live)
        self._take_some(live, inbox)

    def _take_some(self, live: LiveTree, inbox: list[InboxMessage]) -> None:
        """Take as many messages as fit into a turn of the event loop. The others follow when these are durable."""
        live.unread = inbox[EVENTS_AT_ONCE:]
        for message in inbox[:EVENTS_AT_ONCE]:
            self._counters.signals_taken += message.kind is MessageKind.SIGNAL
            live.take_message(message)
        if live.refusals:
            self._refuse(live)
        if live.draft is not None and live.draft.change.rows:
            live.add_effect(partial(self.saved, live))
        else:
            # Every message was refused: nothing has changed, and what a replay left to do may begin.
            self._mover.start_durable(live)
            self.saved(live)

    def saved(self, live: LiveTree) -> None:
        """Note that the messages which a tree has taken are durable; there may be more for it."""
        if live.unread:
            self._loop.call_soon(self._take_more, live)
        elif self._trees.inbox_saved(live):
            self._requests.look()

    def _take_more(self, live: LiveTree) -> None:
        inbox, live.unread = live.unread, []
        if live.phase is not TreePhase.MOVING:
            return
        with self._mover.guarding(live):
            if live.hold is None:
                self._take_some(live, inbox)
            else:
                self.saved(live)  # They stay in the inbox.
        self._mover.settle(live)

    def _refuse(self, live: LiveTree) -> None:
        """Have the asks that a tree has refused answered; it is not suspended before that."""
        refusals, live.refusals = live.refusals, []
        live.lookups += 1
        self._requests.refuse(live, refusals)

    # -- Holding ---------------------------------------------------------------------------------------------

    def is_paused(self, workflow: str) -> bool:
        """Whether a workflow is paused, as far as is known here."""
        return bool(self.pauses) and pause_of(self.pauses, workflow) is not None

    def hold(self, live: LiveTree, hold: TreeHold) -> None:
        """Begin nothing more of a tree. When the attempts that run have ended, it is parked or released."""
        if live.hold is None:
            for command in self._executor.withdraw_waiting(live):
                # The run may have withdrawn some itself, in a change that is not durable yet: that was counted.
                if (command.run, command.call) in live.execution.calls:
                    live.put_off(command)
        live.hold = hold

    def set_pauses(self, pauses: Pauses) -> None:
        """Which workflows are paused: begin nothing more of their runs."""
        self.pauses = pauses
        for live in self._trees.active() if pauses else ():
            if live.journal and live.hold is None and self.is_paused(live.fold.root.workflow):
                self.hold(live, TreeHold())
                if live.phase is not TreePhase.REPLAYING:
                    self._mover.settle(live)
